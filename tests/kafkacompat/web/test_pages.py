"""The pages of a whole broker: contents, filters, bad input and hostile names."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote, urlencode, urljoin

import pytest

from kafkacompat.monitoring.administration.requests import InternalRequests
from kafkacompat.web import topics
from kafkacompat.web.messages import DecodedMessages, decode_region
from kafkacompat.web.pages import PAGES
from kafkacompat.web.rendering import build_link, read_part
from kafkacompat.web.site import HEADERS
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.wire.schema import Request
from tests.kafkacompat.web.visitor import PageText, Visitor

Sent = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Timestamp, key, value, headers."""
HOSTILE = "<script>alert('x')</script>\"'{{7*7}}"


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    """One broker for all tests; each test has topics of its own."""
    return Visitor(tmp_path_factory.mktemp("web"))


def produce(
    visitor: Visitor,
    topic: str,
    records: list[Sent],
    codec: int = 0,
    partition: int = 0,
) -> None:
    """Append one batch."""
    image = visitor.world.broker.metadata.image.topics[topic]
    data = PartitionProduceData(index=partition, records=build_batch(records, codec=codec))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, topic_id=image.topic_id, partition_data=[data])],
    )
    (answered,) = visitor.world.ask(request).responses[0].partition_responses
    assert answered.error_code == 0


def make_topic(visitor: Visitor, topic: str, partitions: int = 1) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)])
    assert visitor.world.ask(request).topics[0].error_code == 0


def commit(visitor: Visitor, group: str, topic: str, offset: int) -> None:
    while visitor.world.ask(FindCoordinatorRequest(coordinator_keys=[group])).coordinators[0].error_code:
        visitor.world.clock.advance(0.1)
    image = visitor.world.broker.metadata.image.topics[topic]
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=HOSTILE)
    topics = [OffsetCommitRequestTopic(name=topic, topic_id=image.topic_id, partitions=[partition])]
    answered = visitor.world.ask(OffsetCommitRequest(group_id=group, topics=topics))
    assert answered.topics[0].partitions[0].error_code == 0


def offsets_of(page: PageText) -> list[str]:
    """List the offsets in the links of the messages of a page."""
    return [link.partition("offset=")[2].partition("&")[0] for link in page.links() if link.endswith("count=1")]


def test_each_page_is_there_and_every_link_leads_to_a_page(visitor: Visitor) -> None:
    visitor.produce("orders", b"first", b'{"total": 1}')
    commit(visitor, "billing", "orders", 1)
    seen: set[str] = set()
    left = ["/ui"]
    while left:
        path = left.pop()
        seen.add(path)
        left += {link for link in visitor.read(path).links() if link.startswith("/")} - seen - set(left)
    assert {"/ui/topics/orders", "/ui/topics/orders/messages?partition=0", "/ui/groups/billing", "/ui/brokers"} <= seen
    assert "first" in visitor.read("/ui/topics/orders/messages").text
    group = visitor.read("/ui/groups/billing").text
    assert "Empty" in group and HOSTILE in group
    assert "node.id" in visitor.read("/ui/brokers").text
    assert "retention.ms" in visitor.read("/ui/topics/orders").text


def test_each_answer_keeps_browsers_from_harm(visitor: Visitor) -> None:
    for path in ("/ui", "/ui/nothing", "/ui/static/ui.js", "/ui/topics/none"):
        headers = visitor.get(path).headers
        for name, value in HEADERS.items():
            assert headers[name.decode().lower()] == value.decode()
    policy = visitor.get("/ui").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for path in ("/ui", "/ui/topics", "/ui/groups", "/ui/brokers", "/ui/live"):
        for tag, attributes in visitor.read(path).elements:
            assert tag != "style" and "style" not in attributes
            assert not any(name.startswith("on") for name in attributes)
            assert tag != "script" or attributes["src"]
            for option in ("src", "href", "action"):
                assert (attributes.get(option) or "/ui").startswith(("/ui", "#")), (path, tag, attributes)


def test_static_files_are_cached_by_their_contents(visitor: Visitor) -> None:
    (style,) = (
        dict(attributes)["href"]
        for tag, attributes in visitor.read("/ui").elements
        if tag == "link" and attributes["rel"] == "stylesheet"
    )
    answer = visitor.get(style or "")
    assert answer.status == 200 and "immutable" in answer.headers["cache-control"]
    assert "http:" not in answer.body and "@import" not in answer.body
    assert visitor.get("/ui/static/../site.py").status == visitor.get("/ui/static/%2e%2e%2fsite.py").status == 404
    assert visitor.get("/ui").headers["cache-control"] == "no-store"
    assert visitor.get("/").headers["location"] == "/ui"


def test_hostile_records_are_text(visitor: Visitor) -> None:
    make_topic(visitor, "hostile")
    now_ms = int(visitor.world.clock.seconds() * 1000)
    hostile = HOSTILE.encode()
    records: list[Sent] = [
        (now_ms, hostile, hostile, [(HOSTILE, hostile), ("", None)]),
        (now_ms, None, None, []),
        (-1, b"\xff" * 9, "\u202e\u2066".encode(), [("h" * 5000, b"")]),
        (-(1 << 62), b"", b"\x1b[31m", []),
        (now_ms, b"{" * 5000, b'{"<b>": "</pre><script>"}', [(str(number), b"x") for number in range(500)]),
    ]
    for record in records:
        produce(visitor, "hostile", [record])
    for path in ("/ui/topics/hostile/messages", "/ui/topics/hostile/messages?partition=0&offset=4&count=1"):
        answer = visitor.get(path)
        assert answer.status == 200 and "\u202e" not in answer.body and "\x1b" not in answer.body
        page = PageText(answer.body)
        assert [attributes for tag, attributes in page.elements if tag == "script" and "src" not in attributes] == []
        assert "b" not in {tag for tag, _ in page.elements}
    page = visitor.read("/ui/topics/hostile/messages?partition=0")
    assert page.text.count(HOSTILE) == 4


def test_hostile_names_in_addresses_are_one_sentence(visitor: Visitor) -> None:
    names = ["%3Cscript%3E", "a%2Fb", "%00", "%ff", "..", "%E2%80%AE", "x" * 3000, "%7B%7B7*7%7D%7D"]
    for name in names:
        for path in (f"/ui/topics/{name}", f"/ui/groups/{name}", f"/ui/topics/{name}/messages", f"/ui/{name}"):
            answer = visitor.get(path)
            assert answer.status in (400, 403, 404), (path, answer.status)
            page = PageText(answer.body)
            assert [values for tag, values in page.elements if tag == "script" and "src" not in values] == []
            assert "\u202e" not in answer.body and "Traceback" not in answer.body


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/ui/topics/none", 404, "the topic none does not exist"),
        ("/ui/topics/t/messages?partition=9", 404, "the topic t has no partition 9"),
        ("/ui/topics/t/messages?partition=x", 400, "partition=x is not valid: it takes a whole number"),
        ("/ui/topics/t/messages?offset=1", 400, "an offset needs a partition: choose one"),
        ("/ui/topics/t/messages?partition=0&offset=-1", 400, "offset=-1 is not valid"),
        ("/ui/topics/t/messages?since=soon", 400, "since=soon is not valid: it takes a time such as 2026-01-31"),
        ("/ui/topics/t/messages?begin=middle", 400, "begin=middle is not valid: it takes newest or oldest"),
        ("/ui/topics/t/messages?count=1000", 400, "count=1000 is not valid: it takes a whole number from 1 to 200"),
        ("/ui/topics?search=" + "x" * 2000, 400, "search is not valid: it takes at most 1000 characters"),
        ("/ui/topics/t?page=-1", 400, "page=-1 is not valid"),
        ("/ui/groups/none", 404, "the group none does not exist on this broker"),
        ("/ui/topics/t/more", 404, "there is no such page"),
        ("/ui/live?topic=none", 404, "the topic none does not exist"),
    ],
)
def test_wrong_addresses_are_one_sentence(visitor: Visitor, path: str, status: int, sentence: str) -> None:
    if "t" not in visitor.world.broker.metadata.image.topics:
        visitor.produce("t", b"x")
    answer = visitor.get(path)
    assert answer.status == status and sentence in PageText(answer.body).text


def test_no_page_creates_a_topic(visitor: Visitor) -> None:
    visitor.get("/ui/topics/none")
    visitor.get("/ui/topics/none/messages")
    assert "none" not in visitor.world.broker.metadata.image.topics


def test_messages_are_selected_by_partition_offset_time_and_key(visitor: Visitor) -> None:
    make_topic(visitor, "selected", 2)
    for number in range(300):
        produce(
            visitor,
            "selected",
            [(1_700_000_000_000 + number * 1000, b"key-%d" % number, b"v", [])],
            partition=number % 2,
        )
    read = visitor.read
    assert offsets_of(read("/ui/topics/selected/messages?count=10")) == [str(149 - number // 2) for number in range(10)]
    assert offsets_of(read("/ui/topics/selected/messages?count=10&begin=oldest&partition=1")) == list(
        map(str, range(10))
    )
    assert offsets_of(read("/ui/topics/selected/messages?partition=0&offset=7&count=2")) == ["7", "8"]
    assert offsets_of(read("/ui/topics/selected/messages?partition=0&offset=999")) == []
    page = read("/ui/topics/selected/messages?since=2023-11-14%2022:14:20&until=2023-11-14%2022:14:22")
    assert offsets_of(page) == ["30", "30", "31"]
    assert offsets_of(read("/ui/topics/selected/messages?since=2100-01-01")) == []
    assert offsets_of(read("/ui/topics/selected/messages?key=key-123")) == ["61"]
    assert offsets_of(read("/ui/topics/selected/messages?key=nobody")) == []


def test_a_search_says_where_it_ended(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkacompat.web.messages.MAX_RECORDS", 50)
    make_topic(visitor, "searched")
    for first in range(0, 100, 20):
        # The timestamps go back.
        produce(visitor, "searched", [(1000 - number, b"%d" % number, b"v", []) for number in range(first, first + 20)])
    page = visitor.read("/ui/topics/searched/messages?begin=oldest&key=99&partition=0")
    assert "the search has not reached the end of the partition" in page.text
    (following,) = (link for link in page.links() if "offset=50&" in link)
    assert offsets_of(visitor.read(following)) == ["99"]
    assert offsets_of(visitor.read("/ui/topics/searched/messages?count=10")) == [
        str(99 - number) for number in range(10)
    ]


def test_the_pages_of_a_partition_are_all_messages_once(visitor: Visitor) -> None:
    make_topic(visitor, "paged")
    for first in range(0, 100, 20):
        produce(visitor, "paged", [(number, b"k", b"v", []) for number in range(first, first + 20)])
    path, seen = "/ui/topics/paged/messages?partition=0&offset=0&count=10", []
    while path:
        page = visitor.read(path)
        seen += offsets_of(page)
        path = next(
            (
                link
                for link in page.links()
                if "offset=" in link and f"offset={len(seen)}&" in link and "count=10" in link
            ),
            "",
        )
    assert seen == list(map(str, range(100)))


def test_every_codec_is_read(visitor: Visitor) -> None:
    for codec in range(5):
        topic = f"codec-{codec}"
        make_topic(visitor, topic)
        produce(visitor, topic, [(number, None, b"value %d" % number, []) for number in range(100)], codec)
        page = visitor.read(f"/ui/topics/{topic}/messages?count=10")
        assert offsets_of(page) == [str(99 - number) for number in range(10)]


def test_a_page_reads_a_bounded_part_of_large_topics(visitor: Visitor) -> None:
    make_topic(visitor, "large")
    for number in range(12):
        produce(visitor, "large", [(number, b"%d" % number, bytes(900_000), [])])
    # The newest messages are shown although those before them do not fit.
    shown = offsets_of(visitor.read("/ui/topics/large/messages?partition=0"))
    assert shown[0] == "11" and len(shown) < 6
    shown = offsets_of(visitor.read("/ui/topics/large/messages?partition=0&begin=oldest"))
    assert shown[0] == "0" and 3 < len(shown) < 6
    answer = visitor.get("/ui/topics/large/messages?partition=0&offset=3&count=1")
    assert len(answer.body) < 20_000


def test_a_batch_that_decompresses_to_too_much_is_a_sentence(visitor: Visitor) -> None:
    make_topic(visitor, "bomb")
    produce(visitor, "bomb", [(0, b"k", bytes(9 << 20), [])], codec=4)
    produce(visitor, "bomb", [(0, b"k", b"after", [])])
    text = visitor.read("/ui/topics/bomb/messages").text
    assert "the batch at offset 0 cannot be decoded" in text and "after" in text


def test_what_a_page_decompresses_is_bounded(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []
    path = "/ui/topics/many-bombs/messages"

    def note(*arguments: Any) -> DecodedMessages:
        outcome = decode_region(*arguments)
        decoded.append(outcome.size_bytes)
        return outcome

    monkeypatch.setattr("kafkacompat.web.messages.decode_region", note)
    make_topic(visitor, "many-bombs", 3)
    for number in range(9):
        produce(visitor, "many-bombs", [(0, b"k", bytes(7 << 20), [])], codec=4, partition=number % 3)
    for query in ("partition=0", "partition=0&begin=oldest", "partition=0&key=k", "partition=0&offset=1"):
        decoded.clear()
        assert offsets_of(visitor.read(f"{path}?{query}"))
        assert sum(decoded) <= 2 * (8 << 20), query
    decoded.clear()
    assert "1 of 3 partitions have more bytes than a page reads" in visitor.read(path).text
    assert sum(decoded) <= 2 * (8 << 20)


def test_topics_are_searched_page_by_page(visitor: Visitor) -> None:
    topics = [CreatableTopic(name=f"t-{number:03d}", num_partitions=1, replication_factor=1) for number in range(120)]
    visitor.world.ask(CreateTopicsRequest(topics=topics))
    names: list[str] = []
    path = "/ui/topics?search=T-"
    while path:
        page = visitor.read(path)
        names += [link.rpartition("/")[2] for link in page.links() if link.startswith("/ui/topics/")]
        path = next((link for link in page.links() if "after=" in link), "")
    assert names == [f"t-{number:03d}" for number in range(120)]
    assert "No topic has nothing in its name" in visitor.read("/ui/topics?search=nothing").text


def test_a_topic_of_many_partitions_has_pages(visitor: Visitor) -> None:
    make_topic(visitor, "wide", 250)
    first, last = visitor.read("/ui/topics/wide"), visitor.read("/ui/topics/wide?page=2")
    assert "/ui/topics/wide/messages?partition=99" in first.links() and "/ui/topics/wide?page=1" in first.links()
    assert "/ui/topics/wide/messages?partition=249" in last.links() and "/ui/topics/wide?page=3" not in last.links()
    assert "only the first 50 partitions are read" in visitor.read("/ui/topics/wide/messages").text


def test_a_topic_is_read_in_portions(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    make_topic(visitor, "portions", 95)
    counts: list[int] = []
    send = InternalRequests.send

    async def send_and_count(requests: InternalRequests, request: Request, version: int | None = None) -> Any:
        response = await send(requests, request, version)
        described = [topic for topic in getattr(response, "topics", ()) if hasattr(topic, "partitions")]
        counts.append(sum(len(topic.partitions) for topic in described))
        return response

    monkeypatch.setattr(InternalRequests, "send", send_and_count)
    monkeypatch.setattr(topics, "SCANNED_A_TURN", 40)
    monkeypatch.setattr(topics, "OFFSETS_A_TURN", 40)
    assert "/ui/topics/portions/messages?partition=94" in visitor.read("/ui/topics/portions").links()
    assert max(counts) == 40


def test_groups_have_lag_and_pages(visitor: Visitor) -> None:
    visitor.produce("lagging", b"1", b"2", b"3")
    for number in range(25):
        commit(visitor, f"group-{number:02d}", "lagging", number % 4)
    page = visitor.read("/ui/groups?search=group-")
    assert "/ui/groups/group-19" in page.links() and "/ui/groups?search=group-&page=1" in page.links()
    assert "/ui/groups/group-24" in visitor.read("/ui/groups?search=group-&page=1").links()
    assert "/ui/groups/group-24" in visitor.read("/ui/groups?search=P-24").links()
    rows = page.text.split("group-01")[1].split("group-02")[0].split()
    assert rows == ["Empty", "classic", "02"], "no member, and a lag of 2"


def test_groups_of_any_name_have_a_page(visitor: Visitor) -> None:
    visitor.produce("dotted", b"1")
    for group in (".", "..", "...", "~", "~.", "a/b", "*"):
        commit(visitor, group, "dotted", 1)
        links = visitor.read(f"/ui/groups?{urlencode({'search': group})}").links()
        link = next(link for link in links if read_part(unquote(link[11:])) == group)
        # As a browser does.
        assert urljoin("http://localhost/", link.replace("%2E", ".")) == f"http://localhost{link}"
        page = visitor.read(link)
        assert f"{group}Stateempty" in "".join(page.text.replace("Empty", "empty").split())


@pytest.mark.parametrize("name", ["", ".", "..", "...", "~", "~~", "~.", "a/b", "%2e", "x"])
def test_each_name_stays_one_part_of_an_address(name: str) -> None:
    _, _, part, last = build_link(("groups", name, "offsets")).removeprefix("/ui").split("/")[0:4]
    assert part not in ("", ".", "..") and read_part(unquote(part)) == name and last == "offsets"


def test_the_plots_show_what_passes(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path)
    visitor.world.clock.advance(5)
    visitor.produce("orders", *[b"x" * 1000] * 20)
    visitor.world.clock.pump([1] * 6)
    for path in ("/ui/live", "/ui/live?topic=orders"):
        page = visitor.read(path)
        lines = [attributes["points"] for tag, attributes in page.elements if tag == "polyline"]
        assert len(lines) == 3 and "kB/s" in page.text
    assert "/ui/topics/orders" in visitor.read("/ui/live").links()
    visitor.world.run(visitor.world.broker.stop())


def test_odd_requests_are_answered(visitor: Visitor) -> None:
    rng = Random(3)
    names = ["large", "", "*", "none", "%zz", "\u00e4", "..", "static", "login"]
    values = ["", "0", "1", "-1", "9" * 19, "9" * 40, "x", "%ff", "%00", "2026-01-01", "newest"]
    options = [
        "partition",
        "offset",
        "count",
        "begin",
        "since",
        "until",
        "key",
        "page",
        "after",
        "search",
        "topic",
        "to",
        "[]",
    ]
    for _ in range(60):
        parts = [rng.choice(names) if part == "*" else part for part in rng.choice(list(PAGES))]
        if rng.random() < 0.2:
            parts.append(rng.choice(names))
        query = "&".join(f"{rng.choice(options)}={rng.choice(values)}" for _ in range(rng.randrange(4)))
        path = "/".join(["/ui", *parts]) + f"?{query}"
        answer = visitor.send(rng.choice(["GET", "GET", "GET", "HEAD", "POST", "PUT"]), path)
        assert answer.status in (200, 303, 400, 403, 404, 405, 415), (path, answer.status, answer.body)
