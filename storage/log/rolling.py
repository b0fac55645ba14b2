"""When a batch needs a new segment."""

from __future__ import annotations

from typing import Protocol

from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.indexes import MAX_RELATIVE_OFFSET, OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import SegmentFiles
from kafkacompat.wire.checksum import crc32c
from kafkacompat.wire.record_batch import BatchHeader


class FillingSegment(Protocol):
    """An active segment as far as `must_roll` depends on it."""

    @property
    def files(self) -> SegmentFiles:
        """Its files; their path chooses the jitter."""

    @property
    def base_offset(self) -> int:
        """Its base offset."""

    @property
    def size_bytes(self) -> int:
        """Bytes of its batches."""

    @property
    def created_ms(self) -> int:
        """Time of its first batch."""

    @property
    def first_timestamp(self) -> int:
        """The first batch's maximum timestamp."""

    @property
    def index_entries(self) -> tuple[int, int]:
        """Numbers of entries of its offset index and time index."""


class PlannedSegment:
    """The active segment as it will be after batches that are not written yet; it counts as Segment.index_batch does."""

    __slots__ = (
        "_indexed_timestamp",
        "_interval_bytes",
        "_max_timestamp",
        "_unindexed_bytes",
        "base_offset",
        "created_ms",
        "files",
        "first_timestamp",
        "index_entries",
        "size_bytes",
    )

    def __init__(self, active: Segment, interval_bytes: int) -> None:
        self.files = active.files
        self.base_offset = active.base_offset
        self.size_bytes = active.size_bytes
        self.created_ms = active.created_ms
        self.first_timestamp = active.first_timestamp
        self.index_entries = active.index_entries
        self._interval_bytes = interval_bytes
        self._unindexed_bytes = active.unindexed_bytes
        self._max_timestamp = active.max_timestamp
        self._indexed_timestamp, _ = active.indexes()[1].last()

    def add(self, header: BatchHeader, now_ms: int) -> None:
        """Count a batch."""
        if not self.size_bytes:
            self.created_ms, self.first_timestamp = now_ms, header.max_timestamp
        self._max_timestamp = max(self._max_timestamp, header.latest_timestamp)
        if self._unindexed_bytes > self._interval_bytes:
            is_later = self._max_timestamp > self._indexed_timestamp
            self.index_entries = self.index_entries[0] + 1, self.index_entries[1] + is_later
            self._indexed_timestamp = max(self._indexed_timestamp, self._max_timestamp)
            self._unindexed_bytes = 0
        self._unindexed_bytes += header.size_bytes
        self.size_bytes += header.size_bytes


def must_roll(
    active: FillingSegment, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int, config: LogConfig
) -> bool:
    """Return whether a batch of that size, last offset and timestamp (-1: none) needs a new segment, by Kafka's rules."""
    filled = active.size_bytes
    if filled > config.segment_bytes - size_bytes or last_offset - active.base_offset > MAX_RELATIVE_OFFSET:
        return True
    if filled and _age_ms(active, max_timestamp, now_ms) > config.max_segment_ms - _jitter_ms(active, config):
        return True
    if not filled:
        # A new segment would have no more room in its indexes.
        return False
    offset_entries, time_entries = active.index_entries
    index_bytes = config.segment_index_bytes
    # One entry of the time index stays free for the segment's largest timestamp.
    return offset_entries >= index_bytes // OFFSET_ENTRY_SIZE or time_entries >= index_bytes // TIME_ENTRY_SIZE - 1


def _age_ms(active: FillingSegment, max_timestamp: int, now_ms: int) -> int:
    if active.first_timestamp >= 0:
        return max_timestamp - active.first_timestamp
    return now_ms - active.created_ms


def _jitter_ms(active: FillingSegment, config: LogConfig) -> int:
    if not config.segment_jitter_ms:
        return 0
    # A hash of the path spreads the jitter over segments, and a restart does not change it.
    return crc32c(active.files.path("").encode()) % min(config.segment_jitter_ms, config.segment_ms)
