"""Connections that are turned away late, as their address makes too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from kafkacompat.network import Transport
    from kafkacompat.timers import Clock, DelayedCall

MOST_HELD = 1000
"""Most connections that one listener holds; those beyond are closed at once."""


class HeldConnection(Protocol):
    """A connection that is closed after *hold_ms* without being read, so that its client does not come back at once (KIP-612).

    *held* has the connections that are open.
    """

    transport: Transport  # type: ignore[assignment]

    def __init__(self, clock: Clock, hold_ms: int, held: set[HeldConnection]) -> None:
        self._clock = clock
        self._held = held
        self._hold_ms = hold_ms
        self._closing: DelayedCall | None = None

    def connectionMade(self) -> None:
        """Twisted: the client has connected."""
        self._held.add(self)
        self.transport.pauseProducing()
        self._closing = self._clock.callLater(self._hold_ms / 1000, self.transport.abortConnection)

    def connectionLost(self, reason: Failure = Failure(ConnectionError("closed"))) -> None:  # noqa: B008
        """Twisted: the connection is closed."""
        self._held.discard(self)
        if self._closing is not None and self._closing.active():
            self._closing.cancel()
