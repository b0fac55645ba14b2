"""Counters of the connections of one listener; those of open connections are with the connections themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kafkacompat.metrics.throttling import ThrottleFigures

TLS = "SSL"
"""The mechanism of clients that are authenticated by a TLS handshake."""


@dataclass(slots=True)
class ListenerTraffic:
    """Connections that were made and closed, and the bytes of the closed ones.

    ``turned_away`` counts clients that were not accepted, by the name of the limit. ``delayed`` has the times that connections beyond a
    rate waited, ``held`` those after which the connections of an address were closed. ``authentications`` has keys of
    (mechanism, whether it succeeded, whether it was a re-authentication); ``expired`` counts connections whose session had ended.
    """

    opened: int = 0
    closed: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    turned_away: Counter[str] = field(default_factory=Counter)
    delayed: ThrottleFigures = field(default_factory=ThrottleFigures)
    held: ThrottleFigures = field(default_factory=ThrottleFigures)
    authentications: Counter[tuple[str, bool, bool]] = field(default_factory=Counter)
    expired: int = 0

    def note_opened(self) -> None:
        """Count a connection."""
        self.opened += 1

    def note_closed(self, received_bytes: int, sent_bytes: int) -> None:
        """Count the end of a connection, and the bytes that it has carried."""
        self.closed += 1
        self.received_bytes += received_bytes
        self.sent_bytes += sent_bytes

    def note_authentication(self, mechanism: str, *, succeeded: bool, repeated: bool = False) -> None:
        """Count the outcome of an authentication, or of a *repeated* one (KIP-368)."""
        self.authentications[mechanism, succeeded, repeated] += 1
