"""Finding batches in a log file by their headers alone."""

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
"""The first 27 bytes of a batch, which a search by offset needs: base offset, length, leader epoch, magic, CRC,
attributes, last offset delta."""

_CHUNK = 4096


class ColdDataError(Exception):
    """The answer needs cold data, and the caller does not wait for the disk."""


class DamagedError(Exception):
    """A header leads to bytes that are no batch."""


class BatchPlace(NamedTuple):
    """The place of a batch in its segment."""

    position: int
    size_bytes: int
    base_offset: int


def find_batch(file: File, offset: int, position: int, end: int, *, may_block: bool) -> BatchPlace | None:
    """Find the first batch from `position` (a batch's beginning) to `end` whose last offset is >= `offset`; else None.

    Raises ColdDataError if `may_block` is False and the headers are not in memory, and DamagedError if the lengths do not
    lead from batch to batch to `end`.
    """
    chunk, chunk_position = _read_chunk(file, position, may_block), position
    while position + _BATCH_START.size <= end:
        if position + _BATCH_START.size > chunk_position + len(chunk):
            chunk, chunk_position = _read_chunk(file, position, may_block), position
            if len(chunk) < _BATCH_START.size:
                if not may_block:
                    raise ColdDataError  # the next page is not in memory
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
    """Return whether only batches without records lie between two positions; False if they are too far apart for one read.

    Raises ColdDataError if `may_block` is False and the headers are not in memory.
    """
    size_bytes = end - position
    if size_bytes > _CHUNK or size_bytes % SMALLEST_BATCH:
        return False
    chunk = _read_chunk(file, position, may_block)
    if len(chunk) < size_bytes and not may_block:
        raise ColdDataError
    starts = range(0, min(size_bytes, len(chunk)), SMALLEST_BATCH)
    return all(_BATCH_START.unpack_from(chunk, at)[1] == SMALLEST_BATCH - LENGTH_PREFIX for at in starts)


def _read_chunk(file: File, position: int, may_block: bool) -> bytes | bytearray | memoryview:
    if may_block:
        return file.pread(_CHUNK, position)
    chunk = file.pread_nowait(_CHUNK, position)
    if chunk is None:
        raise ColdDataError
    return chunk


def scan_headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each whole batch from `position` to `end`, trusting the headers."""
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


def read_claimed_end_offset(files: Files, path: str, base_offset: int) -> int:
    """Return the end offset of the segment in a log file, trusting the headers of its batches."""
    end_offset = base_offset
    file = files.open(path)
    try:
        for _, header in scan_headers(file, 0, file.size()):
            end_offset = header.last_offset + 1
    finally:
        file.close()
    return end_offset
