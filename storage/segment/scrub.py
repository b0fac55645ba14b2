"""Reading sealed segments piece by piece to find damage; it runs in a worker process."""

from __future__ import annotations

from typing import NamedTuple

from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.segment.corruption import BadBatch, as_bad_batch
from kafkacompat.storage.segment.walk import Bounds, walk_log_file


class ScrubExtent(NamedTuple):
    """A segment's log file: its path, its length, and the largest offset that it may hold."""

    path: str
    size_bytes: int
    last_offset: int


class ScrubResult(NamedTuple):
    """Position and offset up to which a segment was read, a batch's end, and the damaged batches on the way."""

    position: int
    next_offset: int
    bad: list[BadBatch]


def scrub(extent: ScrubExtent, position: int, next_offset: int, max_bytes: int) -> ScrubResult:
    """Read about `max_bytes` of a segment from where the last piece ended. Raises OSError."""
    bad = []
    end = position + max_bytes
    file = OsFiles(read_only=True).open(extent.path)
    try:
        for stretch in walk_log_file(file, Bounds(extent.size_bytes, extent.last_offset), next_offset, position):
            position = stretch.end
            if stretch.problem:
                bad.append(as_bad_batch(stretch, extent.last_offset))
            next_offset = bad[-1].last_offset + 1 if stretch.problem else stretch.last_offset + 1
            if position >= end:
                break
    finally:
        file.close()
    return ScrubResult(position, next_offset, bad)
