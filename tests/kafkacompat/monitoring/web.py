"""HTTP without sockets: a clock that listens, and requests to what listens there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransportWithDisconnection


class HttpClock(Clock):
    """A clock with listenTCP, as a reactor has it; ``site`` is what listens."""

    site: Any = None

    def listenTCP(self, port: int, factory: Any, interface: str = "") -> Any:
        self.site = factory
        factory.doStart()
        return _Port(self, interface, port)


class _Port:
    def __init__(self, clock: HttpClock, host: str, port: int) -> None:
        self._clock = clock
        self._address = IPv4Address("TCP", host, port)

    def getHost(self) -> IPv4Address:
        return self._address

    def stopListening(self) -> Deferred[None]:
        self._clock.site.doStop()
        self._clock.site = None
        return succeed(None)


class Transport(StringTransportWithDisconnection):
    """A client's end: what was received, and whether the server has closed or aborted."""

    aborted = False

    def unregisterProducer(self) -> None:
        """As a real transport, accept that there is none."""
        self.producer = None

    def abortConnection(self) -> None:
        self.aborted = True
        self.loseConnection()


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str


def connect(site: Any) -> tuple[Any, Transport]:
    """Connect to a site; return the server's protocol and the client's end."""
    protocol = site.buildProtocol(IPv4Address("TCP", "127.0.0.1", 40000))
    transport = Transport()
    transport.protocol = protocol
    protocol.makeConnection(transport)
    return protocol, transport


def ask(
    clock: HttpClock, path: str, *, method: str = "GET", accept: str = "", advance: Callable[[], None] | None = None
) -> Answer:
    """Send a request and return the answer; *advance* turns the clock until the server has closed."""
    protocol, transport = connect(clock.site)
    protocol.dataReceived(f"{method} {path} HTTP/1.1\r\nHost: here\r\nAccept: {accept}\r\n\r\n".encode())
    for _ in range(1000):
        if not transport.connected:
            break
        if advance is None:
            clock.advance(0.01)
        else:
            advance()
    assert not transport.connected, "the server does not close"
    return parse_answer(transport.value())


def parse_answer(data: bytes) -> Answer:
    """Parse an answer without chunks."""
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Answer(int(status.split(" ")[1]), headers, body.decode())
