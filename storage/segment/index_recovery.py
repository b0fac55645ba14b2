"""Checking whether a crash left the index files of a segment whole. Everything here is a disk operation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kafkacompat.storage.files.filesystem import File, Files
from kafkacompat.storage.segment.header_scan import DamagedError, scan_headers
from kafkacompat.storage.segment.index_files import read_indexes
from kafkacompat.storage.segment.indexes import OffsetIndex, TimeIndex
from kafkacompat.storage.segment.segment import Segment


def has_whole_indexes(files: Files, segment: Segment, interval_bytes: int) -> bool:
    """Return whether the index files of a segment of sound batches were written in full after its last batch.

    Torn entries do not ascend. The headers after the last entry show whether entries are missing at the end, or belong to
    batches that were replaced. Raises FileNotFoundError and CorruptIndexError.
    """
    indexes = read_indexes(files, segment.files.path, segment.base_offset, segment.size_bytes)
    offset_index, time_index = indexes
    columns = offset_index.relative_offsets, offset_index.positions, time_index.timestamps, time_index.relative_offsets
    if not all(map(_is_ascending, columns)):
        return False
    file = segment.pin()
    try:
        size_bytes = segment.size_bytes
        is_sound = _last_entry_names_a_batch(*indexes, file.file, size_bytes)
        return is_sound and _reach_the_end(*indexes, file.file, size_bytes, interval_bytes)
    except DamagedError:
        return False
    finally:
        file.release()


def _is_ascending(column: Sequence[int]) -> bool:
    return all(value < next_value for value, next_value in pairwise(column))


def _last_entry_names_a_batch(offset_index: OffsetIndex, time_index: TimeIndex, file: File, size_bytes: int) -> bool:
    """Return whether the last time entry agrees with its batch: a crash may have written half of the entry."""
    if not len(time_index):
        return True
    timestamp, offset = time_index.last()
    for _, header in scan_headers(file, offset_index.lookup(offset), size_bytes):
        if header.last_offset >= offset:
            return (header.latest_timestamp, header.last_offset) == (timestamp, offset)
    return False


def _reach_the_end(
    offset_index: OffsetIndex, time_index: TimeIndex, file: File, size_bytes: int, interval_bytes: int
) -> bool:
    start = end = 0
    last_offset = None
    if len(offset_index):
        start = end = offset_index.positions[-1]
        last_offset = offset_index.base_offset + offset_index.relative_offsets[-1]
    for position, header in scan_headers(file, start, size_bytes):
        if position == start and last_offset not in (None, header.last_offset):
            return False
        if position - start > interval_bytes or header.max_timestamp > time_index.last()[0]:
            return False
        end = position + header.size_bytes
    return end == size_bytes
