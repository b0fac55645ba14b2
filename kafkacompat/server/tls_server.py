"""The broker's end of a client's connection over TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.security.tls.session import TlsError
from kafkacompat.server.tls_transport import TlsTransport

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.security.tls.listeners import TlsListener
    from kafkacompat.security.tls.session import TlsSession
    from kafkacompat.server.connection import KafkaConnection
    from kafkacompat.timers import Clock

MOST_HANDSHAKES = 1000
"""Handshakes that are under way at once on a listener: each holds some 100 KB, and a client's takes milliseconds."""


class Handshakes:
    """The handshakes of one listener that are under way; beyond `MOST_HANDSHAKES` the oldest ends."""

    def __init__(self) -> None:
        self._under_way: dict[TlsServer, None] = {}

    def add(self, server: TlsServer) -> None:
        """Count a handshake that has begun."""
        self._under_way[server] = None
        if len(self._under_way) > MOST_HANDSHAKES:
            next(iter(self._under_way)).give_up()

    def discard(self, server: TlsServer) -> None:
        """Count a handshake no more."""
        self._under_way.pop(server, None)


class TlsServer(TlsTransport):
    """Connects a `KafkaConnection` at once, so that limits count it, and names its user when the handshake is complete."""

    def __init__(self, tls: TlsListener, connection: KafkaConnection, clock: Clock, handshakes: Handshakes) -> None:
        self._tls = tls
        self._connection: KafkaConnection | None = connection
        self._handshakes = handshakes
        self._is_shaking_hands = True
        super().__init__(tls.accept(), connection, clock, self._name_user, self._end, connection.delay_ms)

    def connectionMade(self) -> None:
        """Twisted: a client has connected."""
        super().connectionMade()
        assert self._connection is not None
        self._connection.makeConnection(self)

    def dataReceived(self, data: bytes) -> None:
        """Twisted: bytes of TLS have arrived."""
        super().dataReceived(data)
        if self._is_shaking_hands:
            self._count_handshake()

    def _count_handshake(self) -> None:
        self._is_shaking_hands = not (self._session.is_up or self._is_over)
        if not self._is_shaking_hands:
            self._handshakes.discard(self)
        elif self._session.is_started:
            self._handshakes.add(self)

    def give_up(self) -> None:
        """End a handshake in favour of newer ones."""
        self._handshakes.discard(self)
        self._fail(f"{MOST_HANDSHAKES} newer TLS handshakes are under way")

    def _name_user(self, session: TlsSession) -> None:
        assert self._connection is not None
        reason = self._connection.note_certificate(self._tls.find_principal(session), lambda: session.server_name)
        if reason is not None:
            raise TlsError(reason)
        self._connection.note_handshake(succeeded=True)

    def _end(self, reason: str) -> None:
        assert self._connection is not None
        if self._is_shaking_hands:
            self._connection.note_handshake(succeeded=False)
        self._connection.cut_off(reason)

    def connectionLost(self, reason: Failure) -> None:  # type: ignore[override]
        """Twisted: the connection is lost."""
        self._handshakes.discard(self)
        super().connectionLost(reason)
        self._connection = None
