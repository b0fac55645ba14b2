"""A network in memory: hosts that listen and connect, links that can be slow or cut, and no socket.

Everything travels by `callLater` of one clock, or of the target's own one, so that nothing is ever delivered inside the call that sent it. A cut link
holds what travels on it, as TCP sends it again; `heal` lets it go on. Neither end of a connection notices the cut.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import CannotListenError, ConnectionRefusedError, DNSLookupError, TimeoutError
from twisted.python.failure import Failure

from tests.fakes.memory_transport import Link, MemoryTransport

if TYPE_CHECKING:
    from twisted.internet.protocol import Factory, Protocol

    from kafkacompat.timers import Clock

LOCAL_NAMES = ("", "0.0.0.0", "127.0.0.1", "localhost")
FIRST_FREE_PORT = 49152


class MemoryNetwork:
    """All hosts and their links; ``delay_s`` is how long anything travels where `set_delay` says nothing else."""

    def __init__(self, clock: Clock, delay_s: float = 0.0) -> None:
        self.clock = clock
        self._delay_s = delay_s
        self._hosts: dict[str, MemoryHost] = {}
        self._clocks: dict[str, Clock] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._next_port = FIRST_FREE_PORT

    def at(self, host: str, clock: Clock | None = None) -> MemoryHost:
        """The network as a host sees it; what arrives there arrives by its *clock*, if it has one of its own."""
        if clock is not None:
            self._clocks[host] = clock
        if host not in self._hosts:
            self._hosts[host] = MemoryHost(self, host)
        return self._hosts[host]

    def set_delay(self, source: str, target: str, delay_s: float) -> None:
        """Change how long anything travels from one host to another."""
        self.link(source, target).delay_s = delay_s

    def cut(self, a: str, b: str) -> None:
        """Let nothing through between two hosts, in both directions."""
        self.link(a, b).cut()
        self.link(b, a).cut()

    def heal(self, a: str, b: str) -> None:
        """End a cut: what was held goes on."""
        self.link(a, b).heal()
        self.link(b, a).heal()

    def link(self, source: str, target: str) -> Link:
        """The link from one host to another."""
        link = self._links.get((source, target))
        if link is None:
            link = self._links[source, target] = Link(self.clock_of(target), self._delay_s)
        return link

    def clock_of(self, host: str) -> Clock:
        """The clock by which things arrive at a host."""
        return self._clocks.get(host, self.clock)

    def links(self, source: str) -> dict[str, Link]:
        """The links that lead away from a host, by target, in the order of their first use."""
        return {target: link for (origin, target), link in self._links.items() if origin == source}

    def find(self, host: str) -> MemoryHost | None:
        """The host of a name."""
        return self._hosts.get(host)

    def free_port(self) -> int:
        """A port that nobody has had."""
        self._next_port += 1
        return self._next_port


class MemoryPort:
    """A port that a host listens on; see ListeningPort."""

    def __init__(self, host: MemoryHost, port: int, factory: Factory) -> None:
        self._host = host
        self._address = IPv4Address("TCP", host.name, port)
        self.factory = factory
        self.connected = True
        self.accepting = True

    def getHost(self) -> IPv4Address:
        """See ListeningPort.getHost."""
        return self._address

    def pauseProducing(self) -> None:
        """See ListeningPort.pauseProducing; a test sees it in ``accepting``."""
        self.accepting = False

    def resumeProducing(self) -> None:
        """See ListeningPort.resumeProducing."""
        self.accepting = True

    def stopListening(self) -> Deferred[None]:
        """See ListeningPort.stopListening."""
        if self.connected:
            self.connected = False
            del self._host.ports[self._address.port]
        return succeed(None)


class MemoryHost:
    """One host, as a `Network` for the broker that runs on it."""

    def __init__(self, network: MemoryNetwork, name: str) -> None:
        self.name = name
        self.ports: dict[int, MemoryPort] = {}
        self.transports: dict[MemoryTransport, None] = {}
        self._attempts: list[_Attempt] = []
        self._network = network

    def listen(self, port: int, factory: Factory, backlog: int, host: str) -> MemoryPort:
        """See Network.listen."""
        if host not in (*LOCAL_NAMES, self.name):
            raise CannotListenError(host, port, _error(errno.EADDRNOTAVAIL))
        if port in self.ports:
            raise CannotListenError(host, port, _error(errno.EADDRINUSE))
        port = port or self._network.free_port()
        self.ports[port] = MemoryPort(self, port, factory)
        return self.ports[port]

    def connect(self, host: str, port: int, protocol: Protocol, timeout_s: float) -> Deferred[None]:
        """See Network.connect."""
        name = self.name if host in LOCAL_NAMES else host
        target = self._network.find(name)
        clock = self._network.clock_of(self.name)
        attempt = _Attempt(clock, protocol, timeout_s)
        self._attempts = [other for other in self._attempts if not other.is_over] + [attempt]
        if target is None:
            clock.callLater(0, attempt.fail, DNSLookupError(host))
        else:
            _Handshake(self._network, self, target, port, attempt).begin()
        return attempt.result

    def kill(self) -> None:
        """End the process on this host: its protocols hear nothing any more, and the other ends are reset."""
        for port in list(self.ports.values()):
            port.stopListening()
        for transport in list(self.transports):
            transport.kill()
        attempts, self._attempts = self._attempts, []
        for attempt in attempts:
            attempt.abandon()


class _Attempt:
    """An attempt to connect a protocol, until it succeeds, fails or is given up."""

    def __init__(self, clock: Clock, protocol: Protocol, timeout_s: float) -> None:
        self.protocol = protocol
        self.result: Deferred[None] = Deferred(lambda _: self._stop_timer())
        self._is_abandoned = False
        self._timer = clock.callLater(timeout_s, self.fail, TimeoutError())

    @property
    def is_over(self) -> bool:
        return self._is_abandoned or bool(self.result.called)

    def succeed(self) -> None:
        self._stop_timer()
        self.result.callback(None)

    def fail(self, problem: Exception) -> None:
        if not self.is_over:
            self._stop_timer()
            self.result.errback(Failure(problem))

    def abandon(self) -> None:
        """Forget the attempt: its process has ended."""
        self._is_abandoned = True
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer.active():
            self._timer.cancel()


class _Handshake(NamedTuple):
    """How a connection comes about: a request travels to the target, and its answer back."""

    network: MemoryNetwork
    source: MemoryHost
    target: MemoryHost
    port: int
    attempt: _Attempt

    def begin(self) -> None:
        """Let the request travel."""
        self._out.send(self._accept)

    @property
    def _out(self) -> Link:
        return self.network.link(self.source.name, self.target.name)

    @property
    def _back(self) -> Link:
        return self.network.link(self.target.name, self.source.name)

    def _accept(self) -> None:
        listening = self.target.ports.get(self.port)
        if listening is None:
            self._back.send(lambda: self.attempt.fail(ConnectionRefusedError()))
            return
        client_address = IPv4Address("TCP", self.source.name, self.network.free_port())
        protocol: Any = listening.factory.buildProtocol(client_address)  # type: ignore[arg-type]
        client = self._transport(self.source, client_address, listening.getHost(), self._out)
        server = self._transport(self.target, listening.getHost(), client_address, self._back)
        client.peer, server.peer = server, client
        self._back.send(lambda: self._connect(client))
        if protocol is None:
            server.reject()
        else:
            server.open(protocol)

    def _connect(self, client: MemoryTransport) -> None:
        """The answer has arrived: both ends are connected, unless this one has given up meanwhile."""
        if self.attempt.is_over:
            client.reject()
            return
        self.attempt.succeed()
        client.open(self.attempt.protocol)

    def _transport(
        self, host: MemoryHost, own_address: IPv4Address, peer_address: IPv4Address, out: Link
    ) -> MemoryTransport:
        return MemoryTransport(self.network.clock_of(host.name), host.transports, own_address, peer_address, out)


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))
