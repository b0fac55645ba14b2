"""Which segments become one, so that they do not get ever smaller."""

from __future__ import annotations

from collections.abc import Sequence

from kafkacompat.storage.compaction.job import Source
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.indexes import MAX_RELATIVE_OFFSET


def groups(
    sources: Sequence[Source], index_bytes: Sequence[int], end_offset: int, config: LogConfig
) -> list[list[Source]]:
    """Put neighbours together as long as they are no larger than one segment may be.

    ``index_bytes`` are the sizes of the larger of each segment's indexes; what lies before ``end_offset`` is in the segments.
    """
    found: list[list[Source]] = []
    size_bytes = index_size_bytes = 0
    ends = [*(each.base_offset for each in sources), end_offset][1:]
    for source, index_size, end in zip(sources, index_bytes, ends, strict=True):
        size_bytes += source.size_bytes
        index_size_bytes += index_size
        fits = size_bytes <= config.segment_bytes and index_size_bytes <= config.segment_index_bytes
        if found and fits and end - 1 - found[-1][0].base_offset <= MAX_RELATIVE_OFFSET:
            found[-1].append(source)
        else:
            found.append([source])
            size_bytes, index_size_bytes = source.size_bytes, index_size
    return found
