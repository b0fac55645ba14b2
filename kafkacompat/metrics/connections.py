"""Counters of the connections of one listener; those of open connections are with the connections themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ListenerTraffic:
    """Connections that were made, turned away and closed, and the bytes of the closed ones."""

    opened: int = 0
    turned_away: int = 0
    closed: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0

    def note_opened(self) -> None:
        """Count a connection."""
        self.opened += 1

    def note_turned_away(self) -> None:
        """Count a client that was not accepted."""
        self.turned_away += 1

    def note_closed(self, received_bytes: int, sent_bytes: int) -> None:
        """Count the end of a connection, and the bytes that it has carried."""
        self.closed += 1
        self.received_bytes += received_bytes
        self.sent_bytes += sent_bytes
