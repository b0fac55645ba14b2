"""The fetches that wait for one partition."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafkacompat.partitions.partition_state import PartitionState
    from kafkacompat.storage.log.log import OffsetPosition


class FetchWatcher(Protocol):
    """A fetch that waits for a partition."""

    def note_bytes(self, size_bytes: int) -> None:
        """Count bytes that became readable."""

    def wake(self) -> None:
        """Answer now: something happened that cannot wait."""


class FetchWatchers:
    """The waiting fetches of one partition, by isolation level.

    ``read_uncommitted`` are notified of every batch below the high watermark, ``read_committed`` of every batch below
    the last stable offset.
    """

    __slots__ = ("_last_stable", "_state", "read_committed", "read_uncommitted")

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self.read_uncommitted: dict[FetchWatcher, None] = {}
        self.read_committed: dict[FetchWatcher, None] = {}
        self._last_stable = state.high_watermark

    def watch(self, watcher: FetchWatcher, *, committed: bool) -> None:
        """Notify *watcher* from now on, with *committed* only of what became stable."""
        if not committed:
            self.read_uncommitted[watcher] = None
            return
        if not self.read_committed:
            self._last_stable = self._state.stable_position()
        self.read_committed[watcher] = None

    def unwatch(self, watcher: FetchWatcher) -> None:
        """Stop notifying *watcher*."""
        self.read_uncommitted.pop(watcher, None)
        self.read_committed.pop(watcher, None)

    def wake(self) -> None:
        """Let every waiting fetch return what it can read now."""
        for watcher in [*self.read_uncommitted, *self.read_committed]:
            watcher.wake()

    def notify(self, size_bytes: int) -> None:
        """Report *size_bytes* of new batches below the high watermark."""
        for watcher in list(self.read_uncommitted):
            watcher.note_bytes(size_bytes)
        if self.read_committed:
            self._notify_stable()

    def _notify_stable(self) -> None:
        """Report what became stable: batches of open transactions are not."""
        before, self._last_stable = self._last_stable, self._state.stable_position()
        moved_bytes = measure_distance(before, self._last_stable)
        for watcher in list(self.read_committed) if moved_bytes else ():
            watcher.note_bytes(moved_bytes)


def measure_distance(before: OffsetPosition, after: OffsetPosition) -> int:
    """Return the bytes between two positions of a log; where they are unknown, more than any fetch waits for."""
    if before.offset == after.offset:
        return 0
    if before.segment_base_offset == after.segment_base_offset and before.position >= 0:
        return after.position - before.position
    return sys.maxsize
