"""Who may see the page: logins, sessions, forms of other sites, access rules, and the users of instances."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from jinja2 import Environment
from twisted.internet.task import Clock

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.monitoring.administration.access import MAX_FAILURES, HttpLogin
from kafkacompat.security.acls.model import AclOperation
from kafkacompat.security.principals import Principal
from kafkacompat.web.forms import check_target
from kafkacompat.web.rendering import Renderer
from kafkacompat.web.sessions import LIFETIME_S, MAX_SESSIONS, Sessions
from kafkacompat.web.site import PLAIN_TEMPLATES
from tests.kafkacompat.web.visitor import PASSWORD, TOKEN, PageText, Visitor

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"alice:{TOKEN}\nshop.bob:{TOKEN[::-1]}\n")
    return path


@pytest.fixture
def visitor(tmp_path: Path, tokens: Path) -> Visitor:
    return Visitor(tmp_path, kafkacompat_http_token_file=str(tokens), kafkacompat_http_scram_enable="true")


def form_token(visitor: Visitor) -> str:
    (token,) = (
        attributes["value"] for tag, attributes in visitor.read("/ui").elements if attributes.get("name") == "token"
    )
    return token or ""


def test_every_page_needs_the_login(visitor: Visitor) -> None:
    for path in ("/ui", "/ui/topics", "/ui/topics/t/messages?partition=0", "/ui/live", "/ui/nothing"):
        answer = visitor.get(path)
        assert answer.status == 303 and answer.headers["location"].startswith("/ui/login?to=%2Fui"), path
    assert visitor.get("/ui/static/ui.css").status == 200
    assert "Topics" not in visitor.read("/ui/login").text


def test_templates_of_the_first_pages_are_compiled_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_thread = False
    compiled: dict[str, bool] = {}
    compile_all, compile_one = Renderer.compile, Environment.compile

    def note_thread(renderer: Renderer, templates: Iterable[str]) -> None:
        nonlocal in_a_thread
        in_a_thread = True
        compile_all(renderer, templates)
        in_a_thread = False

    def note_template(environment: Environment, source: str, name: str, *details: Any, **options: Any) -> Any:
        compiled[name] = in_a_thread
        return compile_one(environment, source, name, *details, **options)

    monkeypatch.setattr(Renderer, "compile", note_thread)
    monkeypatch.setattr(Environment, "compile", note_template)
    visitor = Visitor(tmp_path, kafkacompat_http_scram_enable="true")
    assert visitor.send("PUT", "/ui/topics").status == 405
    assert visitor.get("/ui/static/nothing").status == 404
    assert visitor.log_in("alice", "wrong").status == 401
    assert visitor.post("/ui/topics", {}).status == 403
    assert compiled == dict.fromkeys(PLAIN_TEMPLATES, True)


def test_a_login_leads_back_and_a_logout_ends_it(visitor: Visitor) -> None:
    visitor.add_user("carol")
    answer = visitor.log_in("carol", PASSWORD, to="/ui/topics?search=x")
    assert (answer.status, answer.headers["location"]) == (303, "/ui/topics?search=x")
    cookie = answer.headers["set-cookie"]
    assert "; HttpOnly; SameSite=Strict" in cookie and "Path=/ui" in cookie and "Secure" not in cookie
    assert "carol" in visitor.read("/ui").text
    session = visitor.cookie
    assert visitor.post("/ui/logout", {"token": "wrong"}).status == 403
    token = form_token(visitor)
    assert visitor.post("/ui/logout", {"token": token}).status == 303
    visitor.cookie = session
    assert visitor.get("/ui").status == 303


def test_a_login_by_a_token_ends_with_the_token(visitor: Visitor, tokens: Path) -> None:
    assert visitor.log_in("", TOKEN).status == 303
    assert "alice" in visitor.read("/ui").text
    tokens.write_text("")
    assert visitor.get("/ui").status == 303


def test_a_login_by_a_password_ends_with_the_password(visitor: Visitor) -> None:
    from kafkacompat.metadata.scram_changes import ScramDeletion
    from kafkacompat.security.scram import ScramMechanism

    visitor.add_user("carol")
    visitor.log_in("carol", PASSWORD)
    assert visitor.get("/ui").status == 200
    controller = visitor.world.broker.controller
    visitor.world.run(controller.alter_scram_credentials([ScramDeletion("carol", ScramMechanism.SHA_512)]))
    assert visitor.get("/ui").status == 303


def test_wrong_logins_are_a_sentence_and_bounded(visitor: Visitor) -> None:
    visitor.add_user("carol")
    attempts = [("carol", "wrong"), ("nobody", PASSWORD), ("", TOKEN + "x"), ("", ""), ("\0", "\ud7ff")]
    for name, secret in attempts[:MAX_FAILURES]:
        answer = visitor.log_in(name, secret)
        assert answer.status == 401 and "is wrong" in PageText(answer.body).text and "set-cookie" not in answer.headers
    answer = visitor.log_in("carol", PASSWORD)
    assert answer.status == 429 and "too many wrong logins" in answer.body


def test_sessions_are_signed_and_end(visitor: Visitor) -> None:
    visitor.log_in("", TOKEN)
    first = visitor.cookie
    for wrong in ("", "x", first[:-1], first.replace(".", ""), "0" * len(first), first.partition(".")[0] + ".", "\x7f"):
        visitor.cookie = wrong
        assert visitor.get("/ui").status == 303
    visitor.cookie = first
    assert visitor.get("/ui").status == 200
    visitor.world.clock.advance(LIFETIME_S)
    assert visitor.get("/ui").status == 303


def test_the_oldest_session_gives_way() -> None:
    sessions = Sessions(Clock(), Random(1).randbytes)
    login = HttpLogin(Principal("User", "alice"), b"digest")
    first, second, *_, last = (sessions.begin(login) for _ in range(MAX_SESSIONS + 1))
    assert sessions.find(first) is None
    assert sessions.find(second) is not None and sessions.find(last) is not None
    assert sessions.is_form_token(last, sessions.make_form_token(last))
    assert not sessions.is_form_token(last, sessions.make_form_token(second))


def test_forms_of_other_sites_are_refused(visitor: Visitor) -> None:
    foreign = [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"http://{visitor.host}.evil.example"}]
    for headers in [*foreign, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}]:
        answer = visitor.post("/ui/login", {"name": "", "secret": TOKEN}, **headers)
        assert answer.status == 403 and "set-cookie" not in answer.headers


def test_forms_of_this_site_are_accepted(visitor: Visitor) -> None:
    headers = {"Origin": f"http://{visitor.host}", "Sec_Fetch_Site": "same-origin", "X_Forwarded_Proto": "https"}
    answer = visitor.post("/ui/login", {"name": "", "secret": TOKEN}, **headers)
    assert answer.status == 303 and answer.headers["set-cookie"].endswith("; Secure")


def test_forms_are_bounded(visitor: Visitor) -> None:
    assert visitor.post("/ui/login", {"name": "x" * 100_000, "secret": "x"}).status == 413
    assert visitor.post("/ui/login", {str(number): "x" for number in range(100)}).status == 400
    assert visitor.send("POST", "/ui/login", b"{}", Content_Type="application/json").status == 415
    assert visitor.send("POST", "/ui/login", b"\xff=1", Content_Type="application/x-www-form-urlencoded").status == 400
    visitor.log_in("", TOKEN)
    assert visitor.post("/ui/topics", {}).status == 403


@pytest.mark.parametrize(
    "target",
    [
        "http://evil.example",
        "//evil.example",
        "/uix",
        "/ui/\\evil",
        "/ui/\r\nSet-Cookie: a=b",
        "javascript:x",
        "",
        "/v1",
        "/ui/\u202e",
    ],
)
def test_a_login_leads_to_pages_only(target: str) -> None:
    assert check_target(target) == "/ui"


def test_without_a_login_other_names_do_not_lead_here(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path)
    for host in ("evil.example", "evil.example:9464", "127.0.0.1.evil.example", "", "[", "localhost.evil"):
        visitor.host = host
        assert visitor.get("/ui").status == 403, host
    for own in ("127.0.0.1:9464", "[::1]:9464", "localhost:1", "10.0.0.7", "Broker-1:9464", "broker-1."):
        visitor.host = own
        assert visitor.get("/ui").status == 200, own
    assert visitor.get("/ui/login").headers["location"] == "/ui"
    assert visitor.post("/ui/login", {"name": "", "secret": TOKEN}).status == 403


def test_access_rules_hold(tmp_path: Path, tokens: Path) -> None:
    visitor = Visitor(
        tmp_path,
        kafkacompat_http_token_file=str(tokens),
        authorizer_class_name=AUTHORIZER,
        super_users="User:ANONYMOUS;User:root",
    )
    visitor.produce("orders", b"secret value")
    visitor.produce("open", b"public value")
    tokens.write_text(f"alice:{TOKEN}\nroot:{TOKEN[::-1]}\n")
    visitor.log_in("", TOKEN)
    assert "/ui/topics/orders" not in visitor.read("/ui/topics").links()
    for path in ("/ui/topics/orders", "/ui/topics/orders/messages", "/ui/live?topic=orders"):
        assert visitor.get(path).status == 403, path
    assert "needs the right to describe the cluster" in visitor.read("/ui").text
    answer = visitor.get("/ui/instances")
    assert answer.status == 403 and "you are not allowed to see the instances" in answer.body
    assert "not allowed to see the configuration of the broker" in visitor.read("/ui/brokers").text
    allow(visitor, "User:alice", "open", AclOperation.DESCRIBE)
    assert "/ui/topics/open" in visitor.read("/ui/topics").links()
    page = visitor.read("/ui/topics/open/messages").text
    assert "public value" not in page and "you are not allowed to see partition 0" in page
    allow(visitor, "User:alice", "open", AclOperation.READ)
    assert "public value" in visitor.read("/ui/topics/open/messages").text
    visitor.log_in("", TOKEN[::-1])
    assert "secret value" in visitor.read("/ui/topics/orders/messages").text


def allow(visitor: Visitor, principal: str, topic: str, operation: AclOperation) -> None:
    from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest

    rule = AclCreation(
        resource_type=2,
        resource_name=topic,
        resource_pattern_type=3,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=3,
    )
    assert visitor.world.ask(CreateAclsRequest(creations=[rule])).results[0].error_code == 0


def make_instance(visitor: Visitor, name: str, **properties: str) -> None:
    import json

    given = {key.replace("_", "."): value for key, value in properties.items()}
    answer = visitor.send(
        "PUT",
        f"/v1/instances/{name}",
        json.dumps({"properties": given}).encode(),
        Authorization=f"Bearer {TOKEN}",
        Content_Type="application/json",
    )
    assert answer.status == 201, answer.body


def test_users_of_an_instance_see_their_instance_only(visitor: Visitor) -> None:
    make_instance(visitor, "shop", limit_topics="5")
    make_instance(visitor, "bank")
    visitor.add_user("shop.bob")
    visitor.produce("shop.orders", b"in the shop")
    visitor.produce("bank.secrets", b"in the bank")
    visitor.produce("operator", b"of the operator")
    visitor.world.clock.pump([1] * 12)
    assert visitor.log_in("bob", PASSWORD, instance="bank").status == 401
    assert visitor.log_in("bob", PASSWORD, instance="none").status == 401
    assert visitor.log_in("bob", PASSWORD).status == 401
    assert visitor.log_in("bob", PASSWORD, instance="shop").status == 303
    pages = ["/ui", "/ui/topics", "/ui/groups", "/ui/brokers", "/ui/partitions", "/ui/instances", "/ui/live"]
    for path in pages:
        text = visitor.read(path).text
        assert "bank" not in text and "secrets" not in text and "operator" not in text, path
    assert "/ui/topics/orders" in visitor.read("/ui/topics").links()
    assert "in the shop" in visitor.read("/ui/topics/orders/messages").text
    for topic in ("shop.orders", "bank.secrets", "operator", "secrets"):
        assert visitor.get(f"/ui/topics/{topic}/messages").status == 404, topic
        assert visitor.get(f"/ui/live?topic={topic}").status == 404, topic
    instance = visitor.read("/ui/instances").text
    assert "shop" in instance and "of 5" in instance
    # The same user by a token; the operator sees all.
    assert visitor.log_in("", TOKEN[::-1]).status == 303
    assert "bob" in visitor.read("/ui").text
    visitor.log_in("", TOKEN)
    assert "in the bank" in visitor.read("/ui/topics/bank.secrets/messages").text
    assert "bank" in visitor.read("/ui/instances").text


def test_a_session_ends_with_its_instance(visitor: Visitor) -> None:
    make_instance(visitor, "shop")
    visitor.produce("operator", b"of the operator")
    assert visitor.log_in("", TOKEN[::-1]).status == 303
    assert visitor.get("/ui/topics").status == 200
    path = "/v1/instances/shop?grace.ms=0&confirm=shop"
    assert visitor.send("DELETE", path, Authorization=f"Bearer {TOKEN}").status == 202
    visitor.world.clock.pump([1] * 60)
    assert not visitor.world.broker.instances.by_name
    # The token is still valid, and its name is that of a user of the cluster now.
    assert visitor.get("/ui/topics").status == 303


def test_an_instance_whose_whitelist_lacks_the_address_is_closed(visitor: Visitor) -> None:
    make_instance(visitor, "shop")
    visitor.add_user("shop.bob")
    assert visitor.log_in("shop.bob", PASSWORD).status == 303
    assert visitor.get("/ui").status == 200
    answer = visitor.send(
        "PUT",
        "/v1/instances/shop/whitelist",
        b'{"networks": ["10.9.0.0/16"]}',
        Authorization=f"Bearer {TOKEN}",
        Content_Type="application/json",
    )
    assert answer.status == 200
    answer = visitor.get("/ui")
    assert answer.status == 403 and "192.168.1.1 is not in the whitelist of the instance shop" in answer.body
    assert visitor.log_in("shop.bob", PASSWORD).status == 403


def test_the_properties_of_the_docs_are_valid() -> None:
    text = (Path(__file__).parents[3] / "docs" / "WEB.md").read_text()
    config = BrokerConfig.load(text.partition("```properties\n")[2].partition("```")[0])
    assert config.bool("kafkacompat.ui.enable") and config.http_address == ("127.0.0.1", 9464)


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({}, "kafkacompat.ui.enable=true needs an address: set kafkacompat.http.listener"),
        (
            {"kafkacompat.http.listener": "127.0.0.1:1", "authorizer.class.name": AUTHORIZER},
            "needs a login, as the broker has an authorizer: set kafkacompat.http.scram.enable=true",
        ),
        (
            {
                "kafkacompat.http.listener": "127.0.0.1:1",
                "listeners": "SASL_PLAINTEXT://127.0.0.1:2",
                "sasl.enabled.mechanisms": "PLAIN",
            },
            "needs a login, as clients of the listener SASL_PLAINTEXT have to authenticate themselves",
        ),
        (
            {"kafkacompat.http.listener": "127.0.0.1:1", "kafkacompat.instances.required.listeners": "PLAINTEXT"},
            "needs a login, as listeners serve only clients of instances",
        ),
    ],
)
def test_a_broker_with_users_has_no_open_page(properties: dict[str, str], sentence: str) -> None:
    given = {"node.id": "1", "kafkacompat.ui.enable": "true", **properties}
    with pytest.raises(ConfigError) as caught:
        BrokerConfig(given)
    assert sentence in str(caught.value)
    if len(properties) > 1:
        BrokerConfig({**given, "kafkacompat.http.token.file": "tokens"})
