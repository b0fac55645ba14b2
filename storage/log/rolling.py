"""When a batch needs a new segment."""

from __future__ import annotations

from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.indexes import MAX_RELATIVE_OFFSET, OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.wire.checksum import crc32c


def must_roll(
    active: Segment, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int, config: LogConfig
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


def _age_ms(active: Segment, max_timestamp: int, now_ms: int) -> int:
    if active.first_timestamp >= 0:
        return max_timestamp - active.first_timestamp
    return now_ms - active.created_ms


def _jitter_ms(active: Segment, config: LogConfig) -> int:
    if not config.segment_jitter_ms:
        return 0
    # A hash of the path spreads the jitter over segments, and a restart does not change it.
    return crc32c(active.files.path("").encode()) % min(config.segment_jitter_ms, config.segment_ms)
