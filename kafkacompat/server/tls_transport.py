"""TLS between a protocol and its transport, with the send queue, the back-pressure and the read-ahead of the zero-copy transport.

Twisted's own TLS layer (``TLSMemoryBIOProtocol``) takes bytes only and has no bound on what it queues. This one takes file regions,
and reads and encrypts a piece at a time, once the transport has sent the piece before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from twisted.internet.error import ConnectError
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from kafkacompat.security.tls.session import SLICE_BYTES, TlsError, TlsSession
from kafkacompat.server.outgoing import Outgoing
from kafkacompat.server.transport import MAX_BYTES_PER_TURN, READ_AHEAD_BYTES
from kafkacompat.wire.compiler import Part

if TYPE_CHECKING:
    from kafkacompat.server.transport import PartSender, ReadAhead
    from kafkacompat.timers import Clock, DelayedCall

HANDSHAKE_TIMEOUT_S = 30
"""Time that a peer has for its handshake; Kafka waits for connections.max.idle.ms, ten minutes."""
MAX_UNREAD_BYTES = 256 * 1024
"""Bytes of TLS' own messages that a peer may leave unread: one that never reads could let them grow without bound."""


class TlsFailedError(ConnectError):
    """A TLS connection has failed."""

    def __str__(self) -> str:
        return str(self.args[0])


class TlsTransport(Protocol):
    """A transport over TLS over another transport, which it is the protocol of.

    It calls the methods of *protocol* as the transport would, with plain bytes. ``on_up(session)`` is called when the
    handshake is complete and raises TlsError to end the connection; ``on_failed(reason)`` is called when TLS has failed. The
    time for the handshake begins after *delay_ms*, in which the protocol reads nothing.
    """

    transport: PartSender  # type: ignore[assignment]

    def __init__(
        self,
        session: TlsSession,
        protocol: Protocol,
        clock: Clock,
        on_up: Callable[[TlsSession], None],
        on_failed: Callable[[str], None],
        delay_ms: int = 0,
    ) -> None:
        self._delay_ms = delay_ms
        self.connected = False
        self.read_ahead: ReadAhead | None = None
        self.on_drained: Callable[[], None] | None = None
        self._session = session
        self._protocol: Protocol | None = protocol
        self._clock = clock
        self._on_up: Callable[[TlsSession], None] | None = on_up
        self._on_failed: Callable[[str], None] | None = on_failed
        self._outgoing = Outgoing()
        self._deadline: DelayedCall | None = None
        self._turn: DelayedCall | None = None
        self._is_reading_ahead = self._is_closing = self._is_over = False

    # What the protocol calls

    @property
    def queued_bytes(self) -> int:
        """Bytes that are queued and not sent yet."""
        return self._outgoing.size_bytes + self.transport.queued_bytes

    @property
    def sent_bytes(self) -> int:
        """Bytes that were sent, encrypted, since the connection was made."""
        return self.transport.sent_bytes

    def getHost(self) -> Any:
        """Return the address of this end."""
        return self.transport.getHost()

    def getPeer(self) -> Any:
        """Return the address of the other end."""
        return self.transport.getPeer()

    def send_parts(self, parts: Iterable[Part]) -> None:
        """See Transport.send_parts."""
        self._outgoing.extend(parts)
        if not self.connected or self._is_over:
            self._outgoing.clear()
        elif self._session.is_up:
            self._encrypt_some()

    def pauseProducing(self) -> None:
        """See Transport.pauseProducing."""
        if self.connected:
            self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        """See Transport.resumeProducing."""
        if self.connected and not self._is_over:
            self.transport.resumeProducing()

    def loseConnection(self) -> None:
        """See Transport.loseConnection."""
        self._is_closing = True
        if self.connected and not self._is_over and not self._outgoing:
            self._close()

    def abortConnection(self) -> None:
        """See Transport.abortConnection. An alert that says why the handshake failed still reaches the peer."""
        self._outgoing.clear()
        if self._is_over and not self.transport.queued_bytes:
            self.transport.loseConnection()
        elif self.connected:
            self._is_over = True
            self.transport.abortConnection()

    # What the transport calls

    def connectionMade(self) -> None:
        """Twisted: the connection is made, and the handshake begins."""
        self.connected = True
        self.transport.on_drained = self._on_drained
        self._deadline = self._clock.callLater(
            HANDSHAKE_TIMEOUT_S + self._delay_ms / 1000,
            lambda: self._fail(f"the TLS handshake has taken more than {HANDSHAKE_TIMEOUT_S} s"),
        )

    def dataReceived(self, data: bytes) -> None:
        """Twisted: bytes of TLS have arrived."""
        if self._is_over:
            return
        session, was_up = self._session, self._session.is_up
        try:
            plain = session.receive(data)
            if session.is_up and not was_up:
                self._come_up()
        except TlsError as problem:
            self._fail(str(problem) if was_up else f"the TLS handshake failed: {problem}")
            return
        if self._is_over:
            return
        self._send_output()
        if session.is_up and not was_up:
            self._on_secured()
        if plain and self._protocol is not None:
            self._protocol.dataReceived(plain)
        if session.is_ended and not self._is_over:
            self._close()

    def connectionLost(self, reason: Failure = Failure(ConnectionError("closed"))) -> None:  # noqa: B008
        """Twisted: the connection is lost."""
        self.connected = False
        self._is_over = True
        self._outgoing.clear()
        for timer in (self._deadline, self._turn):
            if timer is not None and timer.active():
                timer.cancel()
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            self._end_protocol(protocol, reason)
        # These refer back to the transport: such a cycle would stay in memory until a full garbage collection.
        self.on_drained = self.read_ahead = self._on_up = self._on_failed = None

    def _end_protocol(self, protocol: Protocol, reason: Failure) -> None:
        protocol.connectionLost(reason)

    # The handshake

    def _come_up(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._on_up is not None:
            self._on_up(self._session)

    def _on_secured(self) -> None:
        """Continue after the handshake."""
        if self._outgoing:
            self._encrypt_some()

    def _send_output(self) -> None:
        output = self._session.take_output()
        if output:
            self.transport.send_parts([output])
            if self.transport.queued_bytes > MAX_UNREAD_BYTES:
                self._fail("the peer does not read the messages of TLS")

    def _fail(self, reason: str) -> None:
        """End the connection because TLS has failed; the peer receives an alert that says why."""
        if self._is_over:
            return
        self._is_over = True
        self._outgoing.clear()
        alert = self._session.take_output()
        if alert:
            self.transport.send_parts([alert])
        if self._on_failed is not None:
            self._on_failed(reason)

    def _close(self) -> None:
        """Tell the peer that nothing more is sent, and close."""
        self._is_over = True
        farewell = self._session.close()
        if farewell:
            self.transport.send_parts([farewell])
        self.transport.loseConnection()

    # The way out

    def _on_drained(self) -> None:
        if self._session.is_up and not self._is_over:
            self._encrypt_some()
            if self.on_drained is not None:
                self.on_drained()

    def _encrypt_some(self) -> None:
        """Encrypt and send pieces until the transport has one that it cannot send at once, or the turn is over."""
        left_bytes = MAX_BYTES_PER_TURN
        try:
            while self._outgoing and left_bytes > 0 and not self.transport.queued_bytes and not self._must_read_ahead():
                left_bytes -= self._encrypt_piece()
        except (OSError, TlsError) as problem:
            self._fail(f"a response cannot be sent: {problem}")
            return
        if not self._outgoing:
            if self._is_closing and not self._is_over:
                self._close()
        elif left_bytes <= 0 and not self.transport.queued_bytes and self._turn is None:
            self._turn = self._clock.callLater(0, self._begin_turn)

    def _encrypt_piece(self) -> int:
        piece = self._outgoing.take(SLICE_BYTES)
        self.transport.send_parts([self._session.encrypt(piece)])
        return len(piece)

    def _begin_turn(self) -> None:
        self._turn = None
        self._on_drained()

    def _must_read_ahead(self) -> bool:
        """Start to read a region ahead if it is not in memory; return True while that is under way."""
        if self._is_reading_ahead:
            return True
        region = self._outgoing.head_region()
        if region is None or self.read_ahead is None:
            return False
        offset = self._outgoing.head_sent
        if region.is_resident(offset, min(region.size_bytes - offset, SLICE_BYTES)):
            return False
        self._is_reading_ahead = True
        size = min(region.size_bytes - offset, READ_AHEAD_BYTES)
        self.read_ahead(region, offset, size).addBoth(self._on_read_ahead)
        return True

    def _on_read_ahead(self, _result: object) -> None:
        self._is_reading_ahead = False
        if self._is_over or not self._outgoing:
            return
        try:
            # One piece without a second check: the connection must make progress even if the kernel drops the page again.
            self._encrypt_piece()
        except (OSError, TlsError) as problem:
            self._fail(f"a response cannot be sent: {problem}")
            return
        self._on_drained()
