"""The broker's end of a client's connection over TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.server.tls_transport import TlsTransport

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.security.tls.listeners import TlsListener
    from kafkacompat.security.tls.session import TlsSession
    from kafkacompat.server.connection import KafkaConnection
    from kafkacompat.timers import Clock


class TlsServer(TlsTransport):
    """Connects a `KafkaConnection` at once, so that limits count it, and names its user when the handshake is complete."""

    def __init__(self, tls: TlsListener, connection: KafkaConnection, clock: Clock) -> None:
        self._tls = tls
        self._connection: KafkaConnection | None = connection
        super().__init__(tls.accept(), connection, clock, self._name_user, connection.cut_off)

    def connectionMade(self) -> None:
        """Twisted: a client has connected."""
        super().connectionMade()
        assert self._connection is not None
        self._connection.makeConnection(self)

    def _name_user(self, session: TlsSession) -> None:
        assert self._connection is not None
        self._connection.principal = self._tls.find_principal(session)

    def connectionLost(self, reason: Failure) -> None:  # type: ignore[override]
        """Twisted: the connection is lost."""
        super().connectionLost(reason)
        self._connection = None
