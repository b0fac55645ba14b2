"""Listening and connecting, as the broker uses them: the operating system's network, or another one in tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectError, DNSLookupError
from twisted.internet.protocol import ClientFactory

if TYPE_CHECKING:
    from twisted.internet.interfaces import IAddress, IConnector
    from twisted.internet.protocol import Factory
    from twisted.internet.protocol import Protocol as TwistedProtocol
    from twisted.internet.tcp import Connector, Port
    from twisted.python.failure import Failure

    from kafkacompat.wire.compiler import Part


class Transport(Protocol):
    """One end of a connection, as its protocol uses it."""

    connected: bool

    def send_parts(self, parts: Iterable[Part]) -> None:
        """Send buffers and file regions in order; regions are released once they are sent or the connection is lost."""

    def pauseProducing(self) -> None:
        """Deliver no more bytes until `resumeProducing`."""

    def resumeProducing(self) -> None:
        """Deliver bytes again."""

    def loseConnection(self) -> None:
        """Close the connection once everything is sent."""

    def abortConnection(self) -> None:
        """Close the connection now."""


class ListeningPort(Protocol):
    """A bound address that accepts connections."""

    @property
    def connected(self) -> bool:
        """Whether it still accepts connections."""

    def getHost(self) -> Any:
        """Return the bound address, with the attributes ``host`` and ``port``."""

    def pauseProducing(self) -> None:
        """Accept no connections for now; those that are made wait."""

    def resumeProducing(self) -> None:
        """Accept connections again."""

    def stopListening(self) -> Deferred[None]:
        """Accept no more connections; fires when the address is free."""


class Network(Protocol):
    """Makes connections. The transports of both ends are a `Transport`."""

    def listen(self, port: int, factory: Factory, backlog: int, host: str) -> ListeningPort:
        """Bind an address; *port* 0 takes a free one, *host* "" every address of this machine.

        Raises CannotListenError.
        """

    def connect(self, host: str, port: int, protocol: TwistedProtocol, timeout_s: float) -> Deferred[None]:
        """Connect *protocol*; fires when the connection is made, just before the protocol's ``connectionMade``.

        Fails with a ConnectError or DNSLookupError. Each address of the host has *timeout_s* seconds to answer. Cancelling
        the Deferred ends the attempt.
        """


class ReactorNetwork:
    """The network of the operating system, by a Twisted reactor; ``port_type`` and ``connector_type`` choose transports."""

    def __init__(self, reactor: Any, port_type: type[Port], connector_type: type[Connector]) -> None:
        self._reactor = reactor
        self._port_type = port_type
        self._connector_type = connector_type

    def listen(self, port: int, factory: Factory, backlog: int, host: str) -> ListeningPort:
        """See Network.listen."""
        listening: Any = self._port_type(port, factory, backlog, host, self._reactor)  # type: ignore[arg-type]
        listening.startListening()
        return listening  # type: ignore[no-any-return]

    def connect(self, host: str, port: int, protocol: TwistedProtocol, timeout_s: float) -> Deferred[None]:
        """See Network.connect. A host name's addresses are tried in turn."""
        if isIPAddress(host) or isIPv6Address(host):
            return self._connect_to(host, port, protocol, timeout_s)
        return Deferred.fromCoroutine(self._connect_to_name(host, port, protocol, timeout_s))

    async def _connect_to_name(self, name: str, port: int, protocol: TwistedProtocol, timeout_s: float) -> None:
        *others, last = await self._resolve(name)
        for address in others:
            try:
                return await self._connect_to(address, port, protocol, timeout_s)
            except ConnectError:
                continue
        await self._connect_to(last, port, protocol, timeout_s)

    def _resolve(self, name: str) -> Deferred[list[str]]:
        """Fire with the addresses of a host, at least one."""
        resolution = _Resolution(name)
        self._reactor.nameResolver.resolveHostName(resolution, name)
        return resolution.result

    def _connect_to(self, address: str, port: int, protocol: TwistedProtocol, timeout_s: float) -> Deferred[None]:
        attempt = _Attempt(protocol)
        connector = self._connector_type(address, port, attempt, timeout_s, None, self._reactor)  # type: ignore[arg-type]
        attempt.connected = Deferred(lambda _: attempt.give_up(connector))
        connector.connect()
        return attempt.connected


class _Attempt(ClientFactory):
    """One attempt to connect a protocol."""

    noisy = False

    def __init__(self, protocol: TwistedProtocol) -> None:
        self._protocol = protocol
        self.connected: Deferred[None] = Deferred()
        self._is_given_up = False

    def give_up(self, connector: Connector) -> None:
        """End the attempt; the Deferred fails by being cancelled, so that no other address is tried."""
        self._is_given_up = True
        connector.stopConnecting()

    def buildProtocol(self, addr: IAddress | None) -> TwistedProtocol:
        """Twisted: the connection is made."""
        self.connected.callback(None)
        return self._protocol

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        """Twisted: the attempt failed."""
        if not self._is_given_up:
            self.connected.errback(reason)


class _Resolution:
    """Collects the addresses of a host name, in the order of the resolver's preference."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._addresses: list[str] = []
        self.result: Deferred[list[str]] = Deferred()

    def resolutionBegan(self, resolution: object) -> None:
        """Twisted: the resolution begins."""

    def addressResolved(self, address: Any) -> None:
        """Twisted: the name has one more address."""
        self._addresses.append(address.host)

    def resolutionComplete(self) -> None:
        """Twisted: there are no more addresses."""
        if self._addresses:
            self.result.callback(self._addresses)
        else:
            self.result.errback(DNSLookupError(self._name))
