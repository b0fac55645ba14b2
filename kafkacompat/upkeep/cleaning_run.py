"""One compaction under way, and what is told of it in the end."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.timers import Clock
from kafkacompat.upkeep.pacing import Rest

if TYPE_CHECKING:
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.storage.compaction import Cleanable, CleaningResult

log = logging.getLogger(__name__)


class CleaningRun:
    """One compaction under way; ``ended`` fires when it is not any more."""

    def __init__(self, partition: Partition, what: Cleanable, clock: Clock) -> None:
        self.partition = partition
        self.what = what
        self.begun_s = clock.seconds()
        self.rest = Rest(clock)
        self.ended: Deferred[None] = Deferred()
        self._given_up = False

    @property
    def is_over(self) -> bool:
        """Whether no further step shall be made; as in Kafka, none once cleanup.policy has compact no longer."""
        return self._given_up or self.partition.closed or not self.partition.log.config.compacted

    def give_up(self) -> Deferred[None]:
        """Make no further step; fires when none is under way."""
        self._given_up = True
        self.rest.end()
        fired: Deferred[None] = Deferred()
        self.ended.addCallback(lambda _: fired.callback(None))
        return fired


def tell(cleaning: CleaningRun, result: CleaningResult, now_s: float) -> None:
    log.info(
        "compacted %r up to offset %d: %d of %d records are left (%d keys), %d bytes read and %d written in %.1f s",
        cleaning.partition,
        result.end_offset,
        result.records_kept,
        result.records_read,
        result.keys,
        result.bytes_read,
        result.bytes_written,
        now_s - cleaning.begun_s,
    )
    if result.keyless:
        log.warning("%r had %d records without a key, which compaction drops", cleaning.partition, result.keyless)
