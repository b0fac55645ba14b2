"""The sound batches at the beginning of a log file that cannot be trusted."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from kafkacompat.storage.files.filesystem import File
from kafkacompat.storage.segment.indexes import MAX_RELATIVE_OFFSET
from kafkacompat.storage.segment.window import Window
from kafkacompat.wire.record_batch import CRC_END, HEADER_SIZE, LENGTH_END, MAGIC_V2, BatchHeader, read_header

_LEGACY_CRC_END = 16
_SMALLEST_LEGACY_LENGTH = 14


class LegacyFormatError(Exception):
    """The log holds messages of format version 0 or 1. They are rejected; taken for damage they would be cut off."""


def scan_sound_batches(
    file: File, size_bytes: int, base_offset: int, position: int, next_offset: int
) -> Iterator[BatchHeader]:
    """Yield the headers of the sound batches in a segment file from a position on.

    Stops at the first batch that is cut off, does not match its CRC, or has an offset that cannot follow. Raises
    LegacyFormatError.
    """
    window = Window(file)
    while position + HEADER_SIZE <= size_bytes:
        header = read_header(window.read(position, HEADER_SIZE))
        end = position + header.size_bytes
        if header.length < HEADER_SIZE - LENGTH_END or end > size_bytes or header.magic != MAGIC_V2:
            break
        in_order = header.base_offset >= next_offset and header.last_offset_delta >= 0
        if not in_order or header.last_offset - base_offset > MAX_RELATIVE_OFFSET:
            return
        if window.checksum(position + CRC_END, end) != header.crc:
            return
        yield header
        position, next_offset = end, header.last_offset + 1
    _refuse_legacy(window, position, size_bytes)


def _refuse_legacy(window: Window, position: int, size_bytes: int) -> None:
    """Raise LegacyFormatError if a correct message of format 0 or 1 begins at a position."""
    head = window.read(position, LENGTH_END + _SMALLEST_LEGACY_LENGTH)
    if len(head) < LENGTH_END + _SMALLEST_LEGACY_LENGTH or head[16] not in (0, 1):
        return
    length, crc = int.from_bytes(head[8:12], "big", signed=True), int.from_bytes(head[12:16], "big")
    end = position + LENGTH_END + length
    if length < _SMALLEST_LEGACY_LENGTH or end > size_bytes:
        return
    if window.checksum(position + _LEGACY_CRC_END, end, zlib.crc32) == crc:
        raise LegacyFormatError(f"byte {position} begins a message of format version {head[16]}, which cannot be read")
