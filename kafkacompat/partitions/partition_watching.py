"""Who waits for a partition: readers of everything for batches, readers of what is committed for transactions to end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kafkacompat.partitions.partition_reading import Home, PartitionReading

if TYPE_CHECKING:
    from kafkacompat.partitions.delayed import Waiting
    from kafkacompat.storage.log.log import Log, OffsetPosition


class PartitionWatching(PartitionReading):
    """``watchers`` are told of every batch that consumers may see, ``stable_watchers`` of what became stable."""

    def __init__(self, opened: Log, home: Home, leader_epoch: int) -> None:
        super().__init__(opened, home, leader_epoch)
        self.watchers: dict[Waiting, None] = {}
        self.stable_watchers: dict[Waiting, None] = {}
        self._told_stable = self.high_watermark

    def watch(self, waiting: Waiting, *, committed: bool) -> None:
        """Tell *waiting* from now on what becomes readable, with *committed* to readers of committed records."""
        if not committed:
            self.watchers[waiting] = None
            return
        if not self.stable_watchers:
            self._told_stable = self._stable_place()
        self.stable_watchers[waiting] = None

    def unwatch(self, waiting: Waiting) -> None:
        """Tell *waiting* no more."""
        self.watchers.pop(waiting, None)
        self.stable_watchers.pop(waiting, None)

    def wake_fetches(self) -> None:
        """Let everybody who waits be answered with what there is."""
        for fetch in [*self.watchers, *self.stable_watchers]:
            fetch.wake()

    def _tell_watchers(self, size_bytes: int) -> None:
        for fetch in list(self.watchers):
            fetch.arrived(size_bytes)
        if self.stable_watchers:
            self._tell_stable_watchers()

    def _tell_stable_watchers(self) -> None:
        """Batches of open transactions are no news to them."""
        before, self._told_stable = self._told_stable, self._stable_place()
        moved_bytes = _distance(before, self._told_stable)
        for fetch in list(self.stable_watchers) if moved_bytes else ():
            fetch.arrived(moved_bytes)


def _distance(before: OffsetPosition, after: OffsetPosition) -> int:
    """Bytes between two places of a log; where that cannot be told, more than anybody waits for."""
    if before.offset == after.offset:
        return 0
    if before.segment_base_offset == after.segment_base_offset and before.position >= 0:
        return after.position - before.position
    return sys.maxsize
