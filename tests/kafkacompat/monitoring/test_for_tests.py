"""/v1/test over HTTP: the clock and the faults of a broker for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.adjustable_reactor import AdjustableReactor
from kafkacompat.broker import Broker
from kafkacompat.faults import Faults
from kafkacompat.monitoring.administration.for_tests import MAX_BODY_BYTES, Controls
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.memory_host import MemoryHost
from tests.kafkacompat.monitoring.web import connect, parse_answer
from tests.kafkacompat.monitoring.world import World, make_key
from tests.kafkacompat.test_broker_over_memory_network import HOST

TOKEN = "0123456789abcdef0123"


class TestedBroker(World):
    """A broker whose clock, if it has one for tests, and faults are controlled over HTTP."""

    __test__ = False

    def __init__(self, folder: Path, *, has_clock: bool = True, **properties: str) -> None:
        super().__init__(folder, **properties)
        self.faults = Faults()
        self.broker_clock = AdjustableReactor(self.clock) if has_clock else None
        host = MemoryHost(self.broker_clock or self.clock, self.network.at(HOST), files=self.files)
        self.broker = Broker(host, self.broker.config, faults=self.faults)
        self.run(self.broker.start())
        assert self.broker.monitor is not None
        self.broker.monitor.serve_tests(Controls(self.broker_clock, self.faults))

    def send(
        self, method: str, path: str, body: Any = None, token: str | None = None, origin: str | None = None
    ) -> tuple[int, Any]:
        """Return status and body of an answer in JSON."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: here",
            f"Content-Length: {len(data)}",
            "Content-Type: application/json",
        ]
        if token is not None:
            lines.append(f"Authorization: Bearer {token}")
        if origin is not None:
            lines.append(f"Origin: {origin}")
        protocol, transport = connect(self.clock.site)
        protocol.dataReceived("\r\n".join([*lines, "", ""]).encode() + data)
        for _ in range(1000):
            if not transport.connected:
                break
            self.clock.advance(0.01)
        answer = parse_answer(transport.value())
        return answer.status, json.loads(answer.body)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> TestedBroker:
    return TestedBroker(tmp_path_factory.mktemp("broker"))


CLOCK, FAULTS = "/v1/test/clock", "/v1/test/faults"


def test_the_clock_is_advanced(world: TestedBroker) -> None:
    before = world.send("GET", CLOCK)[1]
    status, after = world.send("POST", CLOCK, {"advance": "25h"})
    assert status == 200
    assert after["advanced_ms"] - before["advanced_ms"] == 25 * 3600 * 1000
    assert 0 <= after["now_ms"] - before["now_ms"] - 25 * 3600 * 1000 < 1000
    for text, advanced_ms in (("1.5s", 1500), ("2m", 120_000), ("3ms", 3), ("1d", 86_400_000)):
        earlier_ms = world.send("GET", CLOCK)[1]["advanced_ms"]
        assert world.send("POST", CLOCK, {"advance": text})[1]["advanced_ms"] - earlier_ms == advanced_ms
    earlier_ms = world.send("GET", CLOCK)[1]["advanced_ms"]
    assert world.send("POST", CLOCK, {"advance_ms": 250})[1]["advanced_ms"] - earlier_ms == 250


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "give the duration as advance, such as 25h, or as advance_ms"),
        ({"advance": "1h", "advance_ms": 1}, "give the duration as advance"),
        ({"advance": "25"}, "advance='25': it takes a number and a unit of ms, s, m, h, d, such as 25h"),
        ({"advance": 25}, "advance=25: it takes"),
        ({"advance": "-1h"}, "advance='-1h': it takes"),
        ({"advance_ms": "5"}, "advance_ms='5': it takes a number of milliseconds"),
        ({"advance_ms": -5}, "the clock cannot be advanced by -0.005 s: it never goes back"),
        ({"advance": "999999999999d"}, "it ends with the year 9999"),
        ({"advanced": "1h"}, "'advanced' is no field of the body, which takes advance, advance_ms"),
        (b"{", "the body is not valid JSON"),
        (b'{"advance_ms": ' + b"1" * 400 + b"}", "advance_ms is not valid: it has too many digits"),
    ],
)
def test_a_wrong_duration_is_a_sentence(world: TestedBroker, body: Any, sentence: str) -> None:
    status, answer = world.send("POST", CLOCK, body)
    assert (status, sentence in answer["error"]) == (400, True), answer


def test_rules_are_added_listed_and_removed(world: TestedBroker) -> None:
    rule = {"api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS", "times": 1}
    assert world.send("POST", FAULTS, rule) == (201, {"id": 1, **rule, "matched": 0, "applied": 0})
    assert world.ask(HeartbeatRequest(group_id="g")).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.send("POST", FAULTS, {"drop": True, "topic": "t"})[0] == 201
    counts = [(listed["id"], listed["applied"]) for listed in world.send("GET", FAULTS)[1]["rules"]]
    assert counts == [(1, 1), (2, 0)]
    samples = world.scrape()
    assert samples[make_key("kafkacompat_faults_applied_total", rule=1)] == 1
    assert samples[make_key("kafkacompat_test_mode", feature="clock")] == 1
    assert [listed["id"] for listed in world.send("DELETE", f"{FAULTS}/1")[1]["rules"]] == [2]
    assert world.send("DELETE", f"{FAULTS}/1") == (404, {"error": "there is no rule 1"})
    assert world.send("DELETE", f"{FAULTS}/x") == (404, {"error": "there is no rule x"})
    assert world.send("DELETE", f"{FAULTS}?seed=x") == (400, {"error": "seed=x: it takes a whole number"})
    assert world.send("DELETE", f"{FAULTS}?seed=9") == (200, {"seed": 9, "rules": []})


def test_a_wrong_rule_is_a_sentence(world: TestedBroker) -> None:
    status, answer = world.send("POST", FAULTS, {"api": "Produce", "error": "NOT_LEADER"})
    assert (status, answer["error"]) == (400, "error=NOT_LEADER: the protocol has no error of this name")
    sentence = "the body has more than 65536 bytes"
    assert world.send("POST", FAULTS, b" " * (MAX_BODY_BYTES + 1)) == (413, {"error": sentence})


def test_no_page_in_a_browser_controls_the_broker(world: TestedBroker) -> None:
    for method, path in (("POST", CLOCK), ("DELETE", FAULTS)):
        status, answer = world.send(method, path, {"advance_ms": 1}, origin="http://here")
        assert (status, answer["error"].startswith("a page in a browser must not control")) == (403, True)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/test", 404), ("GET", "/v1/test/x", 404), ("PUT", FAULTS, 405), ("GET", f"{FAULTS}/1", 405)],
)
def test_other_paths_and_methods_are_refused(world: TestedBroker, method: str, path: str, status: int) -> None:
    assert world.send(method, path, {})[0] == status


def test_the_document_has_the_operations_and_no_instances(world: TestedBroker) -> None:
    document = json.loads(world.get("/openapi.json").body)
    assert set(document["paths"]) == {CLOCK, FAULTS, f"{FAULTS}/{{id}}"}
    rule = document["paths"][FAULTS]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert rule["times"]["description"] == "a number from 1 to 2147483647"
    assert document["paths"][f"{FAULTS}/{{id}}"]["delete"]["parameters"][0]["name"] == "id"
    assert "/v1/test/clock" in world.get("/docs").body
    assert world.get("/v1/instances").status == 404


def test_a_broker_with_users_requires_a_login_and_serves_instances_too(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"alice:{TOKEN}\n")
    (tmp_path / "data").mkdir()
    world = TestedBroker(tmp_path / "data", has_clock=False, kafkacompat_http_token_file=str(tmp_path / "tokens"))
    assert world.send("GET", FAULTS)[0] == 401
    assert world.send("GET", FAULTS, token=TOKEN)[0] == 200
    assert world.send("GET", CLOCK, token=TOKEN) == (
        404,
        {"error": "the clock of this broker is not for tests: start it with --test-clock"},
    )
    assert world.send("GET", "/v1/instances", token=TOKEN) == (200, {"instances": []})
    assert {"/v1/instances", CLOCK} <= set(json.loads(world.get("/openapi.json").body)["paths"])
