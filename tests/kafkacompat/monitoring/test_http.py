"""The HTTP listener: what it serves, and what hostile clients get."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from prometheus_client.metrics_core import Metric
from twisted.internet.error import CannotListenError

from kafkacompat.monitoring.exposition import IN_A_TURN, PAUSE_S, Format, Scraper, write_metrics
from kafkacompat.monitoring.http import (
    DEADLINE_S,
    MAX_CONNECTIONS,
    BoundedSite,
    HealthPage,
    MetricsPage,
    ReadinessPage,
    listen_http,
)
from kafkacompat.server.listener import ListenError
from tests.kafkacompat.monitoring.web import HttpClock, Transport, ask, connect, parse_answer


class Site:
    """The pages over a few metrics; ``scrapes`` counts how often they were collected."""

    def __init__(self) -> None:
        self.clock = HttpClock()
        self.scrapes = 0
        self.objection: str | None = None
        self.problem: Exception | None = None
        self.scraper = Scraper(self.clock, lambda: [self.collect])
        pages = {
            "metrics": MetricsPage(self.scraper),
            "healthz": HealthPage(),
            "readyz": ReadinessPage(lambda: self.objection),
        }
        self.site = BoundedSite(pages, self.clock)
        listen_http(self.clock, self.site, "127.0.0.1", 9464)

    def collect(self) -> Iterator[Metric | None]:
        if self.problem is not None:
            raise self.problem
        self.scrapes += 1
        yield None
        metric = Metric("speed", "How fast", "gauge")
        metric.add_sample("speed", {"of": 'a "b"\n'}, 3.0)
        yield metric


def test_each_page() -> None:
    site = Site()
    assert ask(site.clock, "/healthz")[::2] == (200, "ok\n")
    assert ask(site.clock, "/readyz")[::2] == (200, "ready\n")
    site.objection = "it rains"
    assert ask(site.clock, "/readyz")[::2] == (503, "not ready: it rains\n")
    answer = ask(site.clock, "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == Format.TEXT.value
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.body.splitlines()[-1] == 'speed{of="a \\"b\\"\\n"} 3.0'
    assert ask(site.clock, "/").status == ask(site.clock, "/metrics/more").status == 404


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz"])
def test_head_has_no_body_and_other_methods_are_rejected(path: str) -> None:
    site = Site()
    answer = ask(site.clock, path, method="HEAD")
    assert (answer.status, answer.body) == (200, "")
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
        answer = ask(site.clock, path, method=method)
        assert answer.status == 405
        assert answer.headers["allow"] == "GET, HEAD"
    assert site.scrapes == (path == "/metrics")


def test_a_body_is_dropped_as_it_comes() -> None:
    site = Site()
    protocol, transport = connect(site.site)
    protocol.dataReceived(b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n")
    for _ in range(99):
        protocol.dataReceived(bytes(100_000))
    request = protocol.requests[0]
    assert request.content.getvalue() == b""
    protocol.dataReceived(bytes(100_000))
    assert parse_answer(transport.value()).status == 200


def test_one_request_a_connection() -> None:
    site = Site()
    protocol, transport = connect(site.site)
    protocol.dataReceived(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
    assert not transport.connected
    assert transport.value().count(b"HTTP/1.1 200") == 1
    assert parse_answer(transport.value()).headers["connection"] == "close"


@pytest.mark.parametrize(
    "garbage",
    [
        b"\r\n\r\n\r\n",
        b"\0" * 100_000,
        b"GET /" + b"a" * 100_000,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000,
        b"\x16\3\1",
    ],
)
def test_garbage_ends_at_once_or_at_the_deadline(garbage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    protocol, transport = connect(site.site)
    for start in range(0, len(garbage), 10_000):
        if transport.connected:
            protocol.dataReceived(garbage[start : start + 10_000])
    site.clock.advance(DEADLINE_S)
    assert not transport.connected
    assert "Traceback" not in caplog.text
    assert b"200" not in transport.value()
    assert site.clock.getDelayedCalls() == []


ODD_REQUESTS = [
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://here/metrics HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /%zz%00 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + b"x" * 1000,
    b"GET /healthz HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nAccept: \xff\xfe\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nCookie: " + b"a=b;" * 3000 + b"\r\n\r\n",
    b"POST /metrics HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 9\r\n\r\n" + b"x" * 9,
]
USUAL = b"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: text/plain\r\nContent-Length: 3\r\n\r\nabc"


def damage(request: bytes, rng: Random) -> bytes:
    """Change, remove or insert a few bytes."""
    damaged = bytearray(request)
    for _ in range(rng.randint(1, 8)):
        place = rng.randrange(len(damaged))
        damaged[place : place + rng.randrange(2)] = rng.choice([b"", bytes([rng.randrange(256)]), b"\r\n", b" ", b":"])
    return bytes(damaged)


@pytest.mark.parametrize("number", range(len(ODD_REQUESTS) + 100))
def test_odd_requests_are_answered_or_closed(number: int, caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    rng = Random(number)
    request = ODD_REQUESTS[number] if number < len(ODD_REQUESTS) else damage(USUAL, rng)
    protocol, transport = connect(site.site)
    for start in range(0, len(request), 1000):
        if transport.connected:
            protocol.dataReceived(request[start : start + 1000])
    site.clock.advance(DEADLINE_S)
    assert not transport.connected
    assert site.clock.getDelayedCalls() == []
    assert b" 500 " not in transport.value().partition(b"\r\n")[0]
    assert "Traceback" not in caplog.text
    assert len(caplog.records) <= 1


def test_activity_does_not_extend_the_deadline() -> None:
    site = Site()
    protocol, transport = connect(site.site)
    protocol.dataReceived(b"GET /healthz HTTP/1.1\r\n")
    for number in range(DEADLINE_S - 1):
        site.clock.advance(1)
        protocol.dataReceived(b"X-%d: slow\r\n" % number)
        assert transport.connected
    site.clock.advance(1)
    assert transport.aborted


def test_the_oldest_connection_gives_way() -> None:
    site = Site()
    held = [connect(site.site)[1] for _ in range(MAX_CONNECTIONS)]
    assert all(transport.connected for transport in held)
    assert ask(site.clock, "/healthz").status == 200
    assert [transport.connected for transport in held] == [False] + [True] * (MAX_CONNECTIONS - 1)


def test_many_that_connect_in_one_turn_leave_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real transport ends in a later turn."""
    ended: list[Transport] = []
    monkeypatch.setattr(Transport, "abortConnection", lambda transport: ended.append(transport))
    site = Site()
    clients = [connect(site.site)[1] for _ in range(MAX_CONNECTIONS + 10)]
    assert ended == clients[:10]


def test_requests_at_the_same_time_share_scrapes() -> None:
    site = Site()
    clients = [connect(site.site) for _ in range(20)]
    for protocol, _ in clients:
        protocol.dataReceived(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    for _ in range(10):
        site.clock.advance(PAUSE_S / 2)
    assert [parse_answer(transport.value()).status for _, transport in clients] == [200] * 20
    assert site.scrapes == 1


def test_scrapes_one_after_the_other_have_pauses() -> None:
    site = Site()
    begun_s = site.clock.seconds()
    for _ in range(10):
        assert ask(site.clock, "/metrics").status == 200
    assert site.scrapes == 10
    assert site.clock.seconds() - begun_s >= 9 * PAUSE_S


def test_a_client_that_leaves_does_not_stop_a_scrape() -> None:
    site = Site()
    clock = site.clock
    site.clock.advance(1)
    taken: list[bytes] = []
    protocol, transport = connect(site.site)
    site.scraper.scrape(Format.TEXT).addCallback(taken.append)
    protocol.dataReceived(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    transport.loseConnection()
    for _ in range(10):
        clock.advance(PAUSE_S)
    assert len(taken) == 1


def test_a_defect_of_a_collector_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    site.problem = RuntimeError("secret")
    answer = ask(site.clock, "/metrics")
    assert answer.status == 500
    assert "secret" not in answer.body
    assert "cannot be collected" in caplog.text
    site.problem = None
    assert ask(site.clock, "/metrics").status == 200


def test_a_port_that_is_taken_is_one_sentence() -> None:
    class Reactor:
        def listenTCP(self, *args: Any, **kwargs: Any) -> Any:
            raise CannotListenError("127.0.0.1", 9464, OSError(98, "Address already in use"))

    with pytest.raises(ListenError) as raised:
        listen_http(Reactor(), Site().site, "127.0.0.1", 9464)
    sentence = "kafkacompat.http.listener: cannot listen on 127.0.0.1:9464: another process listens there"
    assert str(raised.value).startswith(sentence)


@pytest.mark.parametrize("form", list(Format))
def test_a_large_metric_is_written_in_parts_with_one_head(form: Format) -> None:
    metric = Metric("speed", "How fast", "gauge")
    for number in range(IN_A_TURN * 2 + 1):
        metric.add_sample("speed", {"of": str(number)}, number)
    pieces = [piece for piece in write_metrics([lambda: iter([metric])], form) if piece]
    text = b"".join(pieces).decode()
    assert len(pieces) == 3 + (form is Format.OPENMETRICS)
    assert text.count("# TYPE") == text.count("# HELP") == 1
    assert text.count("speed{") == IN_A_TURN * 2 + 1
