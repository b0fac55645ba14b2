"""What the page changes, if kafkacompat.ui.writable allows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacompat.security.acls.model import AclOperation
from tests.kafkacompat.web.test_access import allow, make_instance
from tests.kafkacompat.web.test_pages import commit, offsets_of
from tests.kafkacompat.web.visitor import TOKEN, PageText, Visitor


def send_form(visitor: Visitor, page: str, action: str, **fields: str) -> tuple[int, str]:
    """Send a form with the token of a page; return the status, and the location or the sentence."""
    tokens = {
        attributes["value"] for tag, attributes in visitor.read(page).elements if attributes.get("name") == "token"
    }
    (token,) = tokens
    answer = visitor.post(action, {"token": token or "", **fields})
    if answer.status == 303:
        return 303, answer.headers["location"]
    return answer.status, PageText(answer.body).text.split("read-only")[-1]


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    return Visitor(tmp_path_factory.mktemp("web"), kafkacompat_ui_writable="true")


def test_the_life_of_a_topic(visitor: Visitor) -> None:
    topics = visitor.world.broker.metadata.image.topics
    created = send_form(
        visitor,
        "/ui/topics",
        "/ui/topics",
        name="new",
        partitions="3",
        replicas="",
        configs="retention.ms=1000\n\n a=b",
    )
    assert created[0] == 400 and "a" in created[1] and "new" not in topics
    created = send_form(
        visitor, "/ui/topics", "/ui/topics", name="new", partitions="3", configs=" retention.ms = 1000 "
    )
    assert created == (303, "/ui/topics/new")
    assert len(visitor.world.broker.metadata.image.topics["new"].partitions) == 3
    assert "1000" in visitor.read("/ui/topics/new").text
    status, sentence = send_form(visitor, "/ui/topics", "/ui/topics", name="new")
    assert status == 400 and "topic new exists already" in sentence
    status, sentence = send_form(visitor, "/ui/topics/new", "/ui/topics/new/delete", confirm="other")
    assert status == 400 and "type its name to confirm that" in sentence
    assert send_form(visitor, "/ui/topics/new", "/ui/topics/new/delete", confirm="new") == (303, "/ui/topics")
    assert "new" not in visitor.world.broker.metadata.image.topics
    assert send_form(visitor, "/ui/topics", "/ui/topics/new/delete", confirm="new")[0] == 404


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": "a b"}, "a b"),
        ({"name": ""}, ""),
        ({"name": "x", "partitions": "0"}, "partitions=0 is not valid: it takes a whole number from 1 to 10000"),
        ({"name": "x", "partitions": "9999999"}, "partitions=9999999 is not valid"),
        ({"name": "x", "replicas": "3"}, "replica"),
        ({"name": "x", "configs": "retention.ms"}, "the config retention.ms is not valid: it takes name=value"),
    ],
)
def test_a_topic_that_cannot_be_created_is_a_sentence(visitor: Visitor, fields: dict[str, str], sentence: str) -> None:
    status, shown = send_form(visitor, "/ui/topics", "/ui/topics", **fields)
    assert status == 400 and sentence in shown
    assert "x" not in visitor.world.broker.metadata.image.topics


def test_offsets_are_reset(visitor: Visitor) -> None:
    visitor.produce("orders", b"1", b"2", b"3")
    commit(visitor, "readers", "orders", 1)
    page, action = "/ui/groups/readers", "/ui/groups/readers/offsets"

    def lag_after(to: str) -> str:
        assert send_form(visitor, page, action, topic="orders", to=to) == (303, page)
        return visitor.read(page).text.partition("Lag")[2].split()[0]

    assert [lag_after(to) for to in ("latest", "earliest", "2100-01-01", "2000-01-01")] == ["0", "3", "0", "3"]
    assert send_form(visitor, page, action, topic="orders", to="soon")[0] == 400
    assert send_form(visitor, page, action, topic="none", to="latest")[0] == 404
    assert offsets_of(visitor.read("/ui/topics/orders/messages")) == ["2", "1", "0"]


def test_the_broker_decides_what_a_user_may_change(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"alice:{TOKEN}\nroot:{TOKEN[::-1]}\n")
    visitor = Visitor(
        tmp_path,
        kafkacompat_http_token_file=str(tokens),
        kafkacompat_ui_writable="true",
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ANONYMOUS;User:root",
    )
    visitor.log_in("", TOKEN)
    assert send_form(visitor, "/ui/topics", "/ui/topics", name="new")[0] == 403
    visitor.log_in("", TOKEN[::-1])
    assert send_form(visitor, "/ui/topics", "/ui/topics", name="new") == (303, "/ui/topics/new")
    visitor.log_in("", TOKEN)
    assert send_form(visitor, "/ui/topics", "/ui/topics/new/delete", confirm="new")[0] == 403
    allow(visitor, "User:alice", "new", AclOperation.DESCRIBE)
    reset = send_form(visitor, "/ui/topics", "/ui/groups/readers/offsets", topic="new", to="latest")
    assert reset[0] == 403 and "you are not allowed to commit offsets of this group" in reset[1]
    assert set(visitor.world.broker.metadata.image.topics) == {"new"}


def test_a_user_of_an_instance_changes_the_instance_only(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"alice:{TOKEN}\nshop.bob:{TOKEN[::-1]}\n")
    visitor = Visitor(tmp_path, kafkacompat_http_token_file=str(tokens), kafkacompat_ui_writable="true")
    make_instance(visitor, "shop", limit_topics="1")
    visitor.produce("operator", b"x")
    visitor.log_in("", TOKEN[::-1])
    assert send_form(visitor, "/ui/topics", "/ui/topics", name="own") == (303, "/ui/topics/own")
    status, sentence = send_form(visitor, "/ui/topics", "/ui/topics", name="second")
    assert status == 400 and "limit.topics" in sentence
    assert send_form(visitor, "/ui/topics", "/ui/topics/operator/delete", confirm="operator")[0] == 404
    assert set(visitor.world.broker.metadata.image.topics) == {"operator", "shop.own"}


def test_a_refused_form_leaves_the_user_on_the_page(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"alice:{TOKEN}\n")
    visitor = Visitor(tmp_path, kafkacompat_http_token_file=str(tokens), kafkacompat_ui_writable="true")
    visitor.log_in("", TOKEN)
    page = visitor.read("/ui/topics")
    (token,) = {attributes["value"] for _, attributes in page.elements if attributes.get("name") == "token"}
    refused = visitor.post("/ui/topics", {"token": token or "", "name": "x", "partitions": "0"})
    assert refused.status == 400 and "/ui/groups" in PageText(refused.body).links()
    tokens.write_text("")
    ended = visitor.post("/ui/topics", {"token": token or "", "name": "x"})
    assert ended.status == 403 and "the session has ended: log in" in ended.body


def test_the_cookie_of_another_broker_on_this_host_does_not_matter(visitor: Visitor) -> None:
    visitor.cookie = "of-another.broker"
    try:
        assert send_form(visitor, "/ui/topics", "/ui/topics", name="beside")[0] == 303
    finally:
        visitor.cookie = ""


def test_forms_need_the_token(visitor: Visitor) -> None:
    for token in ("", "x", "0" * 64):
        assert visitor.post("/ui/topics", {"name": "forged", "token": token}).status == 403
    assert visitor.post("/ui/nothing", {"name": "forged"}).status == 403
    assert "forged" not in visitor.world.broker.metadata.image.topics


def test_nothing_changes_unless_allowed(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"alice:{TOKEN}\n")
    visitor = Visitor(tmp_path, kafkacompat_http_token_file=str(tokens))
    visitor.log_in("", TOKEN)
    page = visitor.read("/ui/topics")
    assert [attributes for tag, attributes in page.elements if attributes.get("action") == "/ui/topics"] == [
        {"class": "filters", "method": "get", "action": "/ui/topics", "role": "search"}
    ]
    assert send_form(visitor, "/ui/topics", "/ui/topics", name="new")[0] == 405
    assert "new" not in visitor.world.broker.metadata.image.topics
