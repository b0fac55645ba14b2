"""Retention: which segments a topic's limits let go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segments import Segments


def find_expired_segments(
    segments: Segments,
    config: LogConfig,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> list[Segment]:
    """Return the oldest segments that may be deleted, by Kafka's rules in order: log start offset, size, time. [loop]

    None of them holds `high_watermark` or a later offset. The active segment is among them only if the whole log has
    expired and it is not empty; the caller rolls first.
    """
    ordered = list(segments)
    ends = [segment.base_offset for segment in ordered[1:]]
    count = _count_leading(end <= min(log_start_offset, high_watermark) for end in ends)
    if "delete" in config.cleanup_policy:
        if ordered[-1].size_bytes:
            ends.append(log_end_offset)
        candidates = ordered[: _count_leading(end <= high_watermark for end in ends)]
        count = _beyond_size(segments.size_bytes, candidates, count, config.retention_bytes)
        count = _beyond_time(candidates, count, config.retention_ms, now_ms)
    return ordered[:count]


def _count_leading(conditions: Iterable[bool]) -> int:
    """Return how many conditions hold before the first that does not."""
    return sum(1 for _ in takewhile(bool, conditions))


def _beyond_size(log_bytes: int, candidates: Sequence[Segment], count: int, retention_bytes: int) -> int:
    excess = log_bytes - sum(segment.size_bytes for segment in candidates[:count]) - retention_bytes
    while retention_bytes >= 0 and count < len(candidates) and excess >= candidates[count].size_bytes:
        excess -= candidates[count].size_bytes
        count += 1
    return count


def _beyond_time(candidates: Sequence[Segment], count: int, retention_ms: int, now_ms: int) -> int:
    while retention_ms >= 0 and count < len(candidates) and now_ms - candidates[count].latest_ms > retention_ms:
        count += 1
    return count
