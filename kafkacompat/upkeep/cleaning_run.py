"""The compaction of one partition while it is under way, and the log line at its end."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.timers import Clock
from kafkacompat.upkeep.pacing import InterruptibleWait

if TYPE_CHECKING:
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.storage.compaction import CleanableRange, CleaningResult

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CleaningCounts:
    """What all compactions so far have done, and how many have failed."""

    runs: int = 0
    failures: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    removed_records: int = 0

    def note_result(self, result: CleaningResult) -> None:
        """Count a compaction that has ended."""
        self.runs += 1
        self.read_bytes += result.bytes_read
        self.written_bytes += result.bytes_written
        self.removed_records += result.records_read - result.records_kept


class CleaningRun:
    """The compaction of one partition; ``ended`` fires when no step of it is under way any more."""

    def __init__(self, partition: Partition, cleanable: CleanableRange, clock: Clock) -> None:
        self.partition = partition
        self.cleanable = cleanable
        self.begun_s = clock.seconds()
        self.rest = InterruptibleWait(clock)
        self.ended: Deferred[None] = Deferred()
        self._given_up = False

    @property
    def is_over(self) -> bool:
        """Whether no further step may follow. As in Kafka, none follows once cleanup.policy no longer has compact."""
        return self._given_up or self.partition.closed or not self.partition.log.config.compacted

    def give_up(self) -> Deferred[None]:
        """Take no further step; fires when none is under way."""
        self._given_up = True
        self.rest.end()
        return self.wait_for_end()

    def wait_for_end(self) -> Deferred[None]:
        """Fire when no step is under way any more."""
        fired: Deferred[None] = Deferred()
        self.ended.addCallback(lambda _: fired.callback(None))
        return fired


def log_result(cleaning: CleaningRun, result: CleaningResult, now_s: float) -> None:
    """Log what a compaction did, and how many records without a key it dropped."""
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
