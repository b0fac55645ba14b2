"""Grouping neighbouring segments that become one, so that compaction does not leave ever smaller ones."""

from __future__ import annotations

from collections.abc import Sequence

from kafkacompat.storage.compaction.job import CleaningSource
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.indexes import MAX_RELATIVE_OFFSET


def group_segments(
    sources: Sequence[CleaningSource], index_bytes: Sequence[int], end_offset: int, config: LogConfig
) -> list[list[CleaningSource]]:
    """Group neighbouring segments as long as they fit one segment.

    `index_bytes` has the size of the larger index of each segment; the last segment ends at `end_offset`.
    """
    grouped: list[list[CleaningSource]] = []
    size_bytes = index_size_bytes = 0
    ends = [*(source.base_offset for source in sources), end_offset][1:]
    for source, index_size, end in zip(sources, index_bytes, ends, strict=True):
        size_bytes += source.size_bytes
        index_size_bytes += index_size
        fits = size_bytes <= config.segment_bytes and index_size_bytes <= config.segment_index_bytes
        if grouped and fits and end - 1 - grouped[-1][0].base_offset <= MAX_RELATIVE_OFFSET:
            grouped[-1].append(source)
        else:
            grouped.append([source])
            size_bytes, index_size_bytes = source.size_bytes, index_size
    return grouped
