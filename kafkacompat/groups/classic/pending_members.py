"""Members that were given an id and have not joined with it yet (KIP-394).

They cost a client nothing but a request, so there is a bound on all of them together: beyond it the
oldest is forgotten. Should that one be in earnest after all, it is told that its id is unknown and asks
for another.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkacompat.coordination.outbox import Outbox
from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.timers import Clock, DelayedCall

ENTRY_BYTES = 1500


class PendingMembers:
    """The pending members of all groups, oldest first; each has its session timeout to join."""

    def __init__(
        self, clock: Clock, outbox: Outbox, limit_bytes: int, expired: Callable[[ClassicGroup, str], None]
    ) -> None:
        self._clock = clock
        self._outbox = outbox
        self._limit_bytes = limit_bytes
        self._expired = expired
        self._timers: dict[tuple[ClassicGroup, str], DelayedCall] = {}
        self._used_bytes = 0

    def add(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Expect a member to join with the id it was given."""
        group.pending.add(member_id)
        self._used_bytes += _size_bytes(group, member_id)
        self._timers[group, member_id] = self._clock.callLater(
            timeout_ms / 1000, self._outbox.run, self._forget, group, member_id
        )
        while self._used_bytes > self._limit_bytes:
            self._forget(*next(iter(self._timers)))

    def discard(self, group: ClassicGroup, member_id: str) -> None:
        """Expect it no longer: it joined, or left."""
        timer = self._timers.pop((group, member_id), None)
        if timer is None:
            return
        self._used_bytes -= _size_bytes(group, member_id)
        if timer.active():
            timer.cancel()

    def _forget(self, group: ClassicGroup, member_id: str) -> None:
        self.discard(group, member_id)
        self._expired(group, member_id)


def _size_bytes(group: ClassicGroup, member_id: str) -> int:
    return ENTRY_BYTES + len(group.group_id) + len(member_id)
