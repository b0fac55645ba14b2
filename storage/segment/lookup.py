"""Finding batches in a log file by reading batch headers only."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from kafkacompat.storage.files.filesystem import File, Files
from kafkacompat.wire.record_batch import HEADER_SIZE, BatchHeader, read_header

LENGTH_PREFIX = 12
"""Bytes of a batch that its length field does not count."""

SMALLEST_BATCH = HEADER_SIZE

_BATCH_START = Struct(">qiibIhi")
"""The first 27 bytes of a batch, all that finding an offset needs: base offset, length, leader epoch, magic,
CRC, attributes, last offset delta."""

_CHUNK = 4096


class ColdDataError(Exception):
    """The answer lies on the disk only, and the caller would not wait for it."""


class DamagedError(Exception):
    """A header that leads nowhere: what lies there cannot be a batch."""


class BatchPlace(NamedTuple):
    """Where a batch lies in its segment."""

    position: int
    size_bytes: int
    base_offset: int


def find_batch(file: File, offset: int, position: int, end: int, *, may_block: bool) -> BatchPlace | None:
    """The first batch from `position` (a batch's beginning) whose last offset is >= `offset`; None before `end`.

    Raises ColdDataError when the disk would have to be waited for and `may_block` is False, DamagedError when the way does
    not lead to `end` from batch to batch.
    """
    chunk, chunk_position = _read(file, position, may_block), position
    while position + _BATCH_START.size <= end:
        if position + _BATCH_START.size > chunk_position + len(chunk):
            chunk, chunk_position = _read(file, position, may_block), position
            if len(chunk) < _BATCH_START.size:
                if not may_block:
                    raise ColdDataError  # it goes on in a page that is not in memory
                break
        base_offset, length, _, _, _, _, last_delta = _BATCH_START.unpack_from(chunk, position - chunk_position)
        if length < SMALLEST_BATCH - LENGTH_PREFIX or position + LENGTH_PREFIX + length > end:
            break
        if base_offset + last_delta >= offset:
            return BatchPlace(position, LENGTH_PREFIX + length, base_offset)
        position += LENGTH_PREFIX + length
    if position != end:
        raise DamagedError(f"byte {position} begins no batch that ends before byte {end}")
    return None


def holds_no_record(file: File, position: int, end: int, *, may_block: bool) -> bool:
    """Whether batches without records are all there is between; False where there are more than one look tells.

    Raises ColdDataError when the disk would have to be waited for and `may_block` is False.
    """
    size_bytes = end - position
    if size_bytes > _CHUNK or size_bytes % SMALLEST_BATCH:
        return False
    chunk = _read(file, position, may_block)
    if len(chunk) < size_bytes and not may_block:
        raise ColdDataError
    starts = range(0, min(size_bytes, len(chunk)), SMALLEST_BATCH)
    return all(_BATCH_START.unpack_from(chunk, at)[1] == SMALLEST_BATCH - LENGTH_PREFIX for at in starts)


def _read(file: File, position: int, may_block: bool) -> bytes | bytearray | memoryview:
    if may_block:
        return file.pread(_CHUNK, position)
    chunk = file.pread_nowait(_CHUNK, position)
    if chunk is None:
        raise ColdDataError
    return chunk


def scan_headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch from `position` up to `end`, trusting what the headers say."""
    chunk, chunk_position = b"", position
    while position + SMALLEST_BATCH <= end:
        if position + SMALLEST_BATCH > chunk_position + len(chunk):
            chunk, chunk_position = file.pread(_CHUNK, position), position
            if len(chunk) < SMALLEST_BATCH:
                return
        header = read_header(chunk, position - chunk_position)
        if header.length < SMALLEST_BATCH - LENGTH_PREFIX or position + header.size_bytes > end:
            return
        yield position, header
        position += header.size_bytes


def claimed_end_offset(files: Files, path: str, base_offset: int) -> int:
    """Where the segment of a log file ends, trusting what the headers of its batches say."""
    end_offset = base_offset
    file = files.open(path)
    try:
        for _, header in scan_headers(file, 0, file.size()):
            end_offset = header.last_offset + 1
    finally:
        file.close()
    return end_offset
