"""The syncs of new partitions' folders: syncing takes longer than creating, and clients wait for the creation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, succeed

from kafkacompat.timers import Clock, DelayedCall, run_few_at_a_time

if TYPE_CHECKING:
    from kafkacompat.partitions.partition import Partition

DURABLE_AFTER_S = 1
"""Time between the creation of a partition and the sync of its folder."""


class NewPartitionSyncs:
    """Syncs the folders of new partitions, one at a time, until `stop`. Closing a log syncs its folder, too."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._later: list[DelayedCall] = []
        self._is_stopped = False

    def sync_later(self, partitions: Sequence[Partition]) -> None:
        """Sync the folders after `DURABLE_AFTER_S`."""
        if partitions and not self._is_stopped:
            call = self._clock.callLater(DURABLE_AFTER_S, run_few_at_a_time, self._sync, partitions, at_once=1)
            self._later = [*(other for other in self._later if other.active()), call]

    def _sync(self, partition: Partition) -> Deferred[None]:
        if partition.log.offline or self._is_stopped:
            return succeed(None)
        return partition.disk.run(partition.log.maintenance.make_durable).addErrback(partition.report_disk_failure)

    def stop(self) -> None:
        """Begin no sync any more."""
        self._is_stopped = True
        for call in self._later:
            if call.active():
                call.cancel()
