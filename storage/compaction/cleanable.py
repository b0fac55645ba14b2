"""What of a log is to be compacted, told from what is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segments import Segments


class Cleanable(NamedTuple):
    """The segments of a log up to ``end_offset``; what lies before ``first_dirty_offset`` was compacted before.

    ``bytes`` are those that were not, up to ``end_offset``, ``ratio`` is their share, and ``is_overdue`` says that
    max.compaction.lag.ms has passed.
    """

    first_dirty_offset: int
    end_offset: int
    bytes: int
    ratio: float
    is_overdue: bool

    def is_due(self, config: LogConfig) -> bool:
        """Whether it is worth the while."""
        return self.ratio > config.min_cleanable_dirty_ratio or self.is_overdue


def cleanable(
    segments: Segments,
    config: LogConfig,
    *,
    checkpoint: int | None,
    log_start_offset: int,
    log_end_offset: int,
    stable_offset: int,
    now_ms: int,
) -> Cleanable | None:
    """What a compaction would look at; None when that is nothing. [loop]

    ``checkpoint`` is where the last compaction stopped, ``stable_offset`` the end of what is replicated and decided. Only whole sealed segments are
    compacted, and none from the first on that is younger than min.compaction.lag.ms.
    """
    first_dirty_offset = log_start_offset
    if checkpoint is not None and log_start_offset <= checkpoint <= log_end_offset:
        first_dirty_offset = checkpoint
    if first_dirty_offset >= segments.active.base_offset:
        return None
    end_offset = _end_offset(segments, config, first_dirty_offset, stable_offset, now_ms)
    if end_offset <= first_dirty_offset:
        return None
    below = list(takewhile(lambda each: each.base_offset < end_offset, segments))
    dirty = [each for each in segments.since(first_dirty_offset) if each.base_offset < end_offset]
    dirty_bytes = sum(each.size_bytes for each in dirty)
    total_bytes = dirty_bytes + sum(each.size_bytes for each in below if each.base_offset < first_dirty_offset)
    if not dirty_bytes:
        return None
    is_overdue = any(_is_overdue(each, config, now_ms) for each in _sealed_since(segments, first_dirty_offset))
    return Cleanable(first_dirty_offset, end_offset, dirty_bytes, dirty_bytes / total_bytes, is_overdue)


def _sealed_since(segments: Segments, offset: int) -> Iterator[Segment]:
    return takewhile(lambda each: each.sealed and each is not segments.active, segments.since(offset))


def _end_offset(segments: Segments, config: LogConfig, first_dirty_offset: int, stable_offset: int, now_ms: int) -> int:
    """The base offset of the first segment that is not to be touched."""
    end_offset = segments[max(0, segments.floor(min(stable_offset, segments.active.base_offset)))].base_offset
    lag_ms = config.min_compaction_lag_ms
    for segment in segments.since(first_dirty_offset):
        if segment.base_offset >= end_offset:
            break
        if not segment.sealed or (lag_ms > 0 and segment.latest_ms > now_ms - lag_ms):
            return segment.base_offset
    return end_offset


def _is_overdue(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    return 0 < segment.first_timestamp < now_ms - config.max_compaction_lag_ms
