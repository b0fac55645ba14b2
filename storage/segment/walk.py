"""Walking through an untrusted log file, past damage.

The walk checks every batch: its length, format, checksum and place in the order of offsets. After a damaged batch it
continues at the next sound one: where the damaged batch's length leads, or else where a search of the bytes finds one.
It reads message formats 0 and 1 too.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from kafkacompat.storage.files.filesystem import File
from kafkacompat.storage.segment.window import CHUNK_BYTES, Window
from kafkacompat.wire.checksum import crc32c
from kafkacompat.wire.message_set import NO_TIMESTAMP
from kafkacompat.wire.record_batch import CRC_END, HEADER_SIZE, LENGTH_END, MAGIC_V2, BatchHeader, read_header

LARGEST_OFFSET = 2**63 - 1
MOST_SEARCHED_BYTES = 4 << 30
"""Bytes that one search reads to check apparent beginnings of batches; after them it skips those that claim to be large.
A client may have written a million beginnings into a record, each of a batch up to the end of the file."""

_MAGIC_AT = 16
_LEGACY_CRC_END = 16
_LEGACY_START = 26
_SMALLEST = {0: 14, 1: 22, MAGIC_V2: HEADER_SIZE - LENGTH_END}
"""The smallest length field of each format."""


class Stretch(NamedTuple):
    """A batch (in formats 0 and 1: an entry of the message set), or bytes that are no sound batch.

    `problem` says what is wrong; it is empty for a sound batch, whose other fields are those of its header. In formats 0
    and 1 `base_offset` is the last offset too, and `header` is None. The offsets of a damaged stretch are those missing
    between its sound neighbours, the last one -1 if none follows; `header` is read from its bytes if there are enough.
    """

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    problem: str = ""
    magic: int = -1
    attributes: int = 0
    max_timestamp: int = NO_TIMESTAMP
    crc: int = 0
    header: BatchHeader | None = None

    @property
    def end(self) -> int:
        """The position after it."""
        return self.position + self.size_bytes

    @property
    def is_cut_off(self) -> bool:
        """Whether the file ends within it."""
        return self.problem == _CUT_OFF


class Bounds(NamedTuple):
    """The limits of a file: it ends at position `end`, and its last offset is at most `last_offset`."""

    end: int
    last_offset: int = LARGEST_OFFSET


def walk_log_file(file: File, bounds: Bounds, next_offset: int, position: int = 0) -> Iterator[Stretch]:
    """Yield the stretches of the file from `position` on, where a batch of `next_offset` or a later one begins.

    Together they cover every byte up to the end.
    """
    window = Window(file)
    held: Stretch | None = None
    expected = next_offset
    while position < bounds.end:
        stretch = _check_at(window, position, bounds, next_offset)
        if held is not None and not held.problem and held.base_offset > expected and stretch.problem:
            following = _find_contradiction(window, held, bounds, expected)
            if following is not None:
                held = held._replace(
                    problem=_OUT_OF_ORDER,
                    size_bytes=following.position - held.position,
                    base_offset=expected,
                    last_offset=following.base_offset - 1,
                )
                stretch, next_offset = following, expected
        if held is not None:
            yield held
        if stretch.problem:
            stretch = _extend_damage(window, stretch, bounds, next_offset)
        else:
            expected, next_offset = next_offset, stretch.last_offset + 1
        held, position = stretch, stretch.end
    if held is not None:
        yield held


def check_batch_at(file: File, position: int, bounds: Bounds, next_offset: int) -> Stretch:
    """Check the batch at a position, where `next_offset` or a later one should begin; read nothing after it."""
    return _check_at(Window(file), position, bounds, next_offset)


_OUT_OF_ORDER = "its offset contradicts the batches beside it"
_CUT_OFF = "it is cut off"
_CHECKSUM = "it does not match its checksum"


def _find_contradiction(window: Window, held: Stretch, bounds: Bounds, expected: int) -> Stretch | None:
    """Return the next sound batch if it shows that `held`, which jumps past `expected`, has a wrong offset; else None."""
    stretch = _check_at(window, held.end, bounds, expected)
    following = _find_next_sound(window, stretch, bounds, expected) if stretch.problem else stretch
    return following if following is not None and following.base_offset <= held.last_offset else None


def _check_at(window: Window, position: int, bounds: Bounds, next_offset: int) -> Stretch:
    """Read and check the batch at a position; a damaged one has the size that it claims, or 0 if that is impossible."""
    start = window.read(position, min(HEADER_SIZE, bounds.end - position))
    if len(start) <= _MAGIC_AT:
        return Stretch(position, 0, next_offset, -1, _CUT_OFF)
    stretch = _read_any_header(start, position)
    if stretch is None:
        return Stretch(position, 0, next_offset, -1, f"it has format version {start[_MAGIC_AT]}, which does not exist")
    problem, size_bytes = _find_problem(window, stretch, bounds, next_offset), stretch.size_bytes
    if not problem:
        return stretch
    fits = size_bytes >= LENGTH_END + _SMALLEST[stretch.magic] and stretch.end <= bounds.end
    return stretch._replace(problem=problem, size_bytes=size_bytes if fits else 0)


def _find_problem(window: Window, stretch: Stretch, bounds: Bounds, next_offset: int) -> str:
    """Return what is wrong with a batch; "" for a sound one."""
    _, size_bytes, first_offset, last_offset, _, magic, _, _, crc, _ = stretch
    if size_bytes < LENGTH_END + _SMALLEST[magic]:
        return f"its length {size_bytes - LENGTH_END} is impossible"
    if stretch.end > bounds.end:
        return _CUT_OFF
    if _compute_checksum(window, stretch) != crc:
        return _CHECKSUM
    return "" if next_offset <= first_offset <= last_offset <= bounds.last_offset else _OUT_OF_ORDER


def _read_any_header(start: memoryview, position: int) -> Stretch | None:
    """Read a header of any format; None if the format is unknown or the header is cut off."""
    magic = start[_MAGIC_AT]
    if magic == MAGIC_V2 and len(start) == HEADER_SIZE:
        header = read_header(start)
        base_offset, length, _, _, crc, attributes, last_offset_delta, _, max_timestamp, *_ = header
        last_offset, size_bytes = base_offset + last_offset_delta, LENGTH_END + length
        return Stretch(
            position, size_bytes, base_offset, last_offset, "", magic, attributes, max_timestamp, crc, header
        )
    if magic not in (0, 1) or len(start) < _LEGACY_START:
        return None
    offset, length = (
        int.from_bytes(start[:8], "big", signed=True),
        int.from_bytes(start[8:LENGTH_END], "big", signed=True),
    )
    timestamp = int.from_bytes(start[18:_LEGACY_START], "big", signed=True) if magic else NO_TIMESTAMP
    crc = int.from_bytes(start[LENGTH_END:_LEGACY_CRC_END], "big")
    return Stretch(position, LENGTH_END + length, offset, offset, "", magic, start[17], timestamp, crc)


def _compute_checksum(window: Window, stretch: Stretch) -> int:
    if stretch.header is not None:
        return window.checksum(stretch.position + CRC_END, stretch.end, crc32c)
    return window.checksum(stretch.position + _LEGACY_CRC_END, stretch.end, zlib.crc32)


def _extend_damage(window: Window, damage: Stretch, bounds: Bounds, next_offset: int) -> Stretch:
    """Extend damage up to the next sound batch."""
    following = _find_next_sound(window, damage, bounds, next_offset)
    end, last_offset = (following.position, following.base_offset - 1) if following else (bounds.end, -1)
    return damage._replace(size_bytes=end - damage.position, base_offset=next_offset, last_offset=last_offset)


def _find_next_sound(window: Window, damage: Stretch, bounds: Bounds, next_offset: int) -> Stretch | None:
    """Find the next sound batch after damage: where it says that it ends, unless that skips offsets, else by a search.

    If offsets are skipped, the length may be wrong and span sound batches.
    """
    claimed = _check_at(window, damage.end, bounds, next_offset) if damage.position < damage.end < bounds.end else None
    if claimed is not None and not claimed.problem and claimed.base_offset == damage.last_offset + 1:
        return claimed
    return _search_next_sound(window, damage, bounds, next_offset)


def _search_next_sound(window: Window, damage: Stretch, bounds: Bounds, next_offset: int) -> Stretch | None:
    """Search every byte after the beginning of damage for a sound batch."""
    pattern = _beginning_pattern(next_offset, min(bounds.last_offset, next_offset + 2**31))
    start, left_bytes = damage.position + 1, MOST_SEARCHED_BYTES
    while start + LENGTH_END < bounds.end:
        data = window.read(start, min(CHUNK_BYTES, bounds.end - start))
        for match in pattern.finditer(bytes(data)):
            at = match.start()
            if left_bytes < 0 and int.from_bytes(data[at + 8 : at + LENGTH_END], "big") > CHUNK_BYTES:
                continue
            candidate = _check_at(window, start + at, bounds, next_offset)
            if not candidate.problem:
                return candidate
            left_bytes -= candidate.size_bytes
        start += max(1, len(data) - _MAGIC_AT)
    return None


def _beginning_pattern(first_offset: int, last_offset: int) -> re.Pattern[bytes]:
    """Return a pattern of the first 17 bytes of a batch, which few other bytes match, zeros included."""
    first, last = first_offset.to_bytes(8, "big"), last_offset.to_bytes(8, "big")
    same = next((length for length in range(8) if first[length] != last[length]), 8)
    return re.compile(b"(?s)(?=%s.{%d}(?!\0{4}).{8}[\0\1\2])" % (re.escape(first[:same]), 8 - same))
