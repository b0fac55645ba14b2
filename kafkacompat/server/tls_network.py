"""Connections to other brokers over TLS: a network whose ``connect`` is complete once the handshake is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from kafkacompat.security.tls.session import TlsSession
from kafkacompat.server.tls_transport import TlsFailedError, TlsTransport

if TYPE_CHECKING:
    from twisted.internet.protocol import Factory

    from kafkacompat.network import ListeningPort, Network
    from kafkacompat.security.tls.listeners import TlsListener
    from kafkacompat.timers import Clock


class TlsNetwork:
    """A `Network` that connects by TLS with the certificates of one listener; listening is left to the network below."""

    def __init__(self, network: Network, tls: TlsListener, clock: Clock) -> None:
        self._network = network
        self._tls = tls
        self._clock = clock

    def listen(self, port: int, factory: Factory, backlog: int, host: str) -> ListeningPort:
        """See Network.listen."""
        return self._network.listen(port, factory, backlog, host)

    def connect(self, host: str, port: int, protocol: Protocol, timeout_s: float) -> Deferred[None]:
        """See Network.connect; fails with a TlsFailedError if the handshake fails or the certificate is for another host."""
        transport = TlsClient(self._tls, host, protocol, self._clock)
        connecting = self._network.connect(host, port, transport, timeout_s)

        def give_up(_: object) -> None:
            connecting.cancel()
            transport.give_up()

        result: Deferred[None] = Deferred(give_up)
        transport.result = result
        # A cancelled attempt fails, but its result has been cancelled before.
        connecting.addErrback(lambda failure: None if result.called else result.errback(failure))
        return result


class TlsClient(TlsTransport):
    """The broker's end of a TLS connection to another broker; its protocol is connected after the handshake."""

    result: Deferred[None]

    def __init__(self, tls: TlsListener, host: str, protocol: Protocol, clock: Clock) -> None:
        self._tls = tls
        self._host = host
        self._target = protocol
        self._reason = ""
        super().__init__(tls.connect(host), protocol, clock, self._check_host, self._end)

    def _check_host(self, session: TlsSession) -> None:
        self._tls.check_host(session, self._host)

    def _end(self, reason: str) -> None:
        self._reason = reason
        self.abortConnection()

    def connectionMade(self) -> None:
        """Twisted: the connection is made; the client speaks first."""
        super().connectionMade()
        if self.result.called:
            self.abortConnection()
            return
        self._session.advance()
        self._send_output()

    def give_up(self) -> None:
        """End an attempt that has not succeeded yet."""
        if self.connected:
            self.abortConnection()

    def _on_secured(self) -> None:
        if self.result.called:
            self.abortConnection()
            return
        self.result.callback(None)
        self._target.makeConnection(self)
        super()._on_secured()

    def _end_protocol(self, protocol: Protocol, reason: Failure) -> None:
        failure = Failure(TlsFailedError(string=self._reason)) if self._reason else reason
        if protocol.transport is not None:
            protocol.connectionLost(failure)
        elif not self.result.called:
            words = "the broker closed the connection during the TLS handshake"
            self.result.errback(failure if self._reason else Failure(TlsFailedError(string=words)))
