"""The request of a token by HTTP, over a reactor in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import CancelledError
from twisted.internet.error import ConnectionDone, ConnectionRefusedError
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure

from kafkacompat.config import ConfigError
from kafkacompat.security.sasl.http_fetch import FetchError, make_post
from kafkacompat.security.sasl.jwks import MAX_JWKS_BYTES
from kafkacompat.security.sasl.token_requests import TokenEndpoint
from kafkacompat.security.tls.settings import StoreSettings
from tests.fakes.certificates import shared_authority

ENDPOINT = TokenEndpoint("http://127.0.0.1:8080/token?x=1", "me", "hush", "kafka", 2.0, 3.0)


class AbortableTransport(StringTransport):
    """A transport in memory that can be closed at once, too."""

    def abortConnection(self) -> None:
        self.disconnecting = True


class Exchange:
    """One request of a token, and its outcome."""

    def __init__(self) -> None:
        self.reactor = MemoryReactorClock()
        self.outcome: Any = None
        self.posting = make_post(self.reactor, ENDPOINT)()
        self.posting.addBoth(self._note)
        self.factory: Any
        self.host, self.port, self.factory, *_ = self.reactor.tcpClients[0]
        make_transport: Any = AbortableTransport
        self.transport = make_transport()

    def _note(self, outcome: Any) -> None:
        self.outcome = outcome

    def connect(self) -> Any:
        self.protocol = self.factory.buildProtocol(None)
        self.protocol.makeConnection(self.transport)
        self.reactor.advance(0)
        return self.protocol

    def answer(self, status: str, body: bytes) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.connect().dataReceived(head.encode() + body)


def test_a_token_is_requested_by_a_form() -> None:
    exchange = Exchange()
    exchange.answer("200 OK", b'{"access_token":"x"}')
    assert (exchange.host, exchange.port) == ("127.0.0.1", 8080)
    head, _, body = exchange.transport.value().partition(b"\r\n\r\n")
    assert head.startswith(b"POST /token?x=1 HTTP/1.1\r\n")
    assert b"Authorization: Basic bWU6aHVzaA==" in head
    assert b"Content-Type: application/x-www-form-urlencoded" in head
    assert body == b"grant_type=client_credentials&scope=kafka"
    assert exchange.outcome == (200, b'{"access_token":"x"}')


def test_a_status_is_no_failure_of_the_request() -> None:
    exchange = Exchange()
    exchange.answer("302 Found", b"elsewhere")
    assert exchange.outcome == (302, b"elsewhere")
    assert len(exchange.reactor.tcpClients) == 1


def test_an_answer_has_a_bound() -> None:
    exchange = Exchange()
    exchange.answer("200 OK", bytes(MAX_JWKS_BYTES + 1))
    assert "has more than" in str(exchange.outcome.value)
    assert exchange.transport.producerState == "stopped"


def test_a_provider_that_cannot_be_reached() -> None:
    exchange = Exchange()
    exchange.factory.clientConnectionFailed(None, Failure(ConnectionRefusedError()))
    exchange.reactor.advance(1)
    assert exchange.outcome.check(FetchError)
    assert str(exchange.outcome.value) == "Connection was refused by other side"


def test_a_provider_that_says_nothing() -> None:
    exchange = Exchange()
    exchange.connect()
    exchange.reactor.advance(4.9)
    assert not exchange.posting.called
    exchange.reactor.advance(0.2)
    assert exchange.outcome.check(FetchError) and exchange.transport.disconnecting
    assert str(exchange.outcome.value) == "there was no answer within 5 s"
    exchange.protocol.connectionLost(Failure(ConnectionDone()))


def test_a_provider_that_stops_in_the_middle_of_its_answer() -> None:
    """The connection ends with the request: the rest of the answer takes no memory."""
    exchange = Exchange()
    exchange.connect().dataReceived(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{")
    exchange.reactor.advance(5.1)
    assert str(exchange.outcome.value) == "there was no answer within 5 s"
    assert exchange.transport.producerState == "stopped"


def test_a_cancelled_request_is_no_failure_of_the_provider() -> None:
    exchange = Exchange()
    exchange.connect()
    exchange.posting.cancel()
    assert exchange.outcome.check(CancelledError)


def test_the_trust_store_of_a_provider(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    store = StoreSettings("ssl.truststore", "PEM", str(path))
    endpoint = TokenEndpoint("https://issuer/", "me", "hush", trust_store=store)
    with pytest.raises(ConfigError, match="cannot be read"):
        make_post(MemoryReactorClock(), endpoint)
    path.write_text(shared_authority().pem)
    assert callable(make_post(MemoryReactorClock(), endpoint))
