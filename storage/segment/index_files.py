"""Reading and writing the two index files of a segment. Everything here is a disk operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kafkacompat.storage.files.checkpoints import overwrite_file
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.indexes import (
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    CorruptIndexError,
    OffsetIndex,
    TimeIndex,
)

INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"

PathOf: TypeAlias = Callable[[str], str]
"""Returns the path of a segment's file with a suffix."""


def read_indexes(
    files: Files, path: PathOf, base_offset: int, segment_size_bytes: int
) -> tuple[OffsetIndex, TimeIndex]:
    """Read both indexes of a segment. Raises CorruptIndexError or FileNotFoundError."""
    offset_index = OffsetIndex.decode(base_offset, files.read(path(INDEX_SUFFIX)), segment_size_bytes)
    return offset_index, TimeIndex.decode(base_offset, files.read(path(TIME_INDEX_SUFFIX)))


def write_indexes(files: Files, path: PathOf, indexes: tuple[OffsetIndex, TimeIndex]) -> None:
    """Write and sync both index files."""
    offset_index, time_index = indexes
    for suffix, data in ((INDEX_SUFFIX, offset_index.encode()), (TIME_INDEX_SUFFIX, time_index.encode())):
        overwrite_file(files, path(suffix), data)


def read_last_timestamp(files: Files, path: PathOf, base_offset: int) -> tuple[int, int]:
    """Read (largest timestamp, last offset of its batch) from the time index; (-1, base offset) if that is empty.

    Raises FileNotFoundError or CorruptIndexError if either index file cannot be trusted.
    """
    size_bytes = files.size(path(TIME_INDEX_SUFFIX))
    if size_bytes % TIME_ENTRY_SIZE or files.size(path(INDEX_SUFFIX)) % OFFSET_ENTRY_SIZE:
        raise CorruptIndexError(
            f"{path(TIME_INDEX_SUFFIX)} or the offset index beside it is no whole number of entries long"
        )
    if size_bytes == 0:
        return -1, base_offset
    file = files.open(path(TIME_INDEX_SUFFIX))
    try:
        # The first and the last entry: a process that died leaves zeros at the end of a preallocated file.
        data = file.pread(TIME_ENTRY_SIZE, 0) + file.pread(TIME_ENTRY_SIZE, size_bytes - TIME_ENTRY_SIZE)
    finally:
        file.close()
    return TimeIndex.decode(base_offset, data).last()
