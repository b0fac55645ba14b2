"""The expected contents of a partition's log, and the part that must survive a crash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkacompat.metadata.image import TopicImage
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.segment.walk import LARGEST_OFFSET
from kafkacompat.wire.record_batch import LENGTH_END, BatchHeader, read_header

ASSIGNED_BYTES = 16
"""Of a batch's header: base offset, length and leader epoch, which the log assigns."""


class Batch(NamedTuple):
    """A batch that was sent, with the place that it has in the log."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    header: BatchHeader
    body: bytes

    @classmethod
    def sent(cls, records: bytes, base_offset: int, leader_epoch: int) -> Batch:
        """One that is sent to a log which ends at an offset."""
        header = read_header(records)
        last_offset = base_offset + header.last_offset_delta
        return cls(base_offset, last_offset, leader_epoch, header, records[ASSIGNED_BYTES:])

    def records(self, base_offset: int = 0) -> bytes:
        """As it was sent, or with another offset."""
        length = len(self.body) + ASSIGNED_BYTES - LENGTH_END
        return base_offset.to_bytes(8, "big") + length.to_bytes(4, "big") + bytes(4) + self.body

    @property
    def last_sequence(self) -> int:
        """Of its last record."""
        return self.header.base_sequence + self.header.last_offset_delta


class Promise(NamedTuple):
    """The promise for a partition after a crash: a beginning of ``batches`` that reaches at least a given offset."""

    is_compacted: bool
    batches: tuple[Batch, ...]
    end_at_least: int
    start_at_least: int
    start_at_most: int


@dataclass
class PartitionModel:
    """One partition; the log may hold less than ``batches`` as long as appends wait in line."""

    topic_id: bytes
    is_compacted: bool = False
    batches: list[Batch] = field(default_factory=list)
    acknowledged: int = 0
    """Everything before this offset was answered."""
    synced: int = 0
    """Everything before this offset was on the disk once."""
    start_saved: int = 0
    """Where DeleteRecords that was answered let it begin."""
    start: int = 0
    """Where it begins, perhaps only in memory."""
    end: int = 0
    """The offset after the last sent batch."""
    truncating_to: int = LARGEST_OFFSET

    def send(self, records: bytes, leader_epoch: int) -> Batch:
        """Note a batch that was sent after all others."""
        batch = Batch.sent(records, self.end, leader_epoch)
        self.batches.append(batch)
        self.end = batch.last_offset + 1
        return batch

    def note(self, log: Log) -> None:
        """Take from a live log how far it has come."""
        self.synced = max(self.synced, min(log.recovery_point, self.truncating_to))
        self.start = max(self.start, log.log_start_offset)

    def promise(self, *, power_fails: bool, syncs_always: bool) -> Promise:
        """Return the promise for a crash at this moment; without `power_fails` only the process ends."""
        acknowledged = 0 if power_fails and not syncs_always else self.acknowledged
        end = max(self.synced, acknowledged)
        return Promise(self.is_compacted, tuple(self.batches), end, self.start_saved, self.start)

    def fall_back(self, promise: Promise) -> None:
        """Drop everything but the promise, as a crash does."""
        self.acknowledged = promise.end_at_least
        self.start_saved, self.start = promise.start_at_least, promise.start_at_most

    def allow_truncation(self, offset: int) -> None:
        """From now on everything from an offset on may be gone."""
        self.truncating_to = offset
        self.acknowledged, self.synced = min(self.acknowledged, offset), min(self.synced, offset)

    def truncate(self, offset: int) -> None:
        """It is gone."""
        self.truncating_to = LARGEST_OFFSET
        self.batches = [batch for batch in self.batches if batch.last_offset < offset]
        self.end = max(self.start, self.batches[-1].last_offset + 1 if self.batches else 0)

    def adopt(self, start: int, end: int) -> None:
        """Continue with the contents that a start found after a crash."""
        self.batches = [batch for batch in self.batches if batch.last_offset < end]
        self.acknowledged, self.synced = min(self.acknowledged, end), min(self.synced, end)
        self.start, self.end = start, end
        self.start_saved = min(self.start_saved, start)


Promises = Mapping[tuple[str, int], Promise]
"""By topic and partition."""

Topics = Mapping[str, TopicImage]
