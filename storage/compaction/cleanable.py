"""Choosing the segments of a log to compact, from memory alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segments import Segments


class CleanableRange(NamedTuple):
    """The segments to compact: all before `end_offset`, of which those before `first_dirty_offset` are clean.

    `bytes` counts the dirty segments up to `end_offset`, and `ratio` is their share of all bytes before it. `is_overdue`:
    max.compaction.lag.ms has passed.
    """

    first_dirty_offset: int
    end_offset: int
    bytes: int
    ratio: float
    is_overdue: bool

    def is_due(self, config: LogConfig) -> bool:
        """Return whether a compaction is due, by min.cleanable.dirty.ratio or max.compaction.lag.ms."""
        return self.ratio > config.min_cleanable_dirty_ratio or self.is_overdue


def find_cleanable(
    segments: Segments,
    config: LogConfig,
    *,
    checkpoint: int | None,
    log_start_offset: int,
    log_end_offset: int,
    stable_offset: int,
    now_ms: int,
) -> CleanableRange | None:
    """Return what a compaction would read; None for nothing. [loop]

    `checkpoint` is where the last compaction stopped, `stable_offset` the last stable offset. Only sealed segments before
    it are compacted, and none from the first one on that is younger than min.compaction.lag.ms.
    """
    first_dirty_offset = log_start_offset
    if checkpoint is not None and log_start_offset <= checkpoint <= log_end_offset:
        first_dirty_offset = checkpoint
    if first_dirty_offset >= segments.active.base_offset:
        return None
    end_offset = _end_offset(segments, config, first_dirty_offset, stable_offset, now_ms)
    if end_offset <= first_dirty_offset:
        return None
    below = list(takewhile(lambda segment: segment.base_offset < end_offset, segments))
    dirty = [segment for segment in segments.since(first_dirty_offset) if segment.base_offset < end_offset]
    dirty_bytes = sum(segment.size_bytes for segment in dirty)
    total_bytes = dirty_bytes + sum(segment.size_bytes for segment in below if segment.base_offset < first_dirty_offset)
    if not dirty_bytes:
        return None
    is_overdue = any(_is_overdue(segment, config, now_ms) for segment in _sealed_since(segments, first_dirty_offset))
    return CleanableRange(first_dirty_offset, end_offset, dirty_bytes, dirty_bytes / total_bytes, is_overdue)


def _sealed_since(segments: Segments, offset: int) -> Iterator[Segment]:
    return takewhile(lambda segment: segment.sealed and segment is not segments.active, segments.since(offset))


def _end_offset(segments: Segments, config: LogConfig, first_dirty_offset: int, stable_offset: int, now_ms: int) -> int:
    """Return the base offset of the first segment that must not be compacted."""
    end_offset = segments[max(0, segments.find_slot(min(stable_offset, segments.active.base_offset)))].base_offset
    lag_ms = config.min_compaction_lag_ms
    for segment in segments.since(first_dirty_offset):
        if segment.base_offset >= end_offset:
            break
        if not segment.sealed or (lag_ms > 0 and segment.latest_ms > now_ms - lag_ms):
            return segment.base_offset
    return end_offset


def _is_overdue(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    return 0 < segment.first_timestamp < now_ms - config.max_compaction_lag_ms
