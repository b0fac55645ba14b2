"""Members that have received an id and have not joined with it yet (KIP-394).

A client creates one with a single request, so the memory of all of them is limited. Beyond the limit the oldest one is
forgotten. If its client joins after all, its id is rejected as unknown, and the client requests another one.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkacompat.coordination.outbox import Outbox
from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.timers import Clock, DelayedCall

ENTRY_BYTES = 1500


class PendingMembers:
    """The pending members of all groups, the oldest first. Each has to join within its session timeout."""

    def __init__(
        self, clock: Clock, outbox: Outbox, limit_bytes: int, on_expired: Callable[[ClassicGroup, str], None]
    ) -> None:
        self._clock = clock
        self._outbox = outbox
        self._limit_bytes = limit_bytes
        self._on_expired = on_expired
        self._timers: dict[tuple[ClassicGroup, str], DelayedCall] = {}
        self._used_bytes = 0

    def add(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Wait for a member to join with its new id."""
        group.pending.add(member_id)
        self._used_bytes += _size_bytes(group, member_id)
        self._timers[group, member_id] = self._clock.callLater(
            timeout_ms / 1000, self._outbox.run, self._expire, group, member_id
        )
        while self._used_bytes > self._limit_bytes:
            self._expire(*next(iter(self._timers)))

    def discard(self, group: ClassicGroup, member_id: str) -> None:
        """Stop to wait for a member: it joined, or left."""
        timer = self._timers.pop((group, member_id), None)
        if timer is None:
            return
        self._used_bytes -= _size_bytes(group, member_id)
        if timer.active():
            timer.cancel()

    def _expire(self, group: ClassicGroup, member_id: str) -> None:
        self.discard(group, member_id)
        self._on_expired(group, member_id)


def _size_bytes(group: ClassicGroup, member_id: str) -> int:
    return ENTRY_BYTES + len(group.group_id) + len(member_id)
