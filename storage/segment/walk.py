"""Going through a log file of which nothing is to be trusted, and finding the way behind what is damaged.

Every batch is judged: its length, its format, its checksum, its place in the order of offsets. Where one cannot be believed the
walk goes on at the next sound batch, which its length leads to, or else the bytes behind it are searched for. Reads message
formats 0 and 1 too.
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
"""So much is read in one search of what only looks like the beginning of a batch; then nothing is tried that claims to be large.
A client may have written a million such beginnings into a record, each of a batch up to the end of the file."""

_MAGIC_AT = 16
_LEGACY_CRC_END = 16
_LEGACY_START = 26
_SMALLEST = {0: 14, 1: 22, MAGIC_V2: HEADER_SIZE - LENGTH_END}
"""The smallest length field of each format."""


class Stretch(NamedTuple):
    """A batch (in formats 0 and 1: an entry of the message set), or bytes that are none.

    ``problem`` says why it is not to be believed and is empty for a sound one. Of a sound one the other fields are
    what it says; of formats 0 and 1 ``base_offset`` is the last offset too, and ``header`` is None. Of a damaged one the offsets are
    those missing between its sound neighbours (the last one -1 when nothing sound follows), and ``header`` is what stands there, if a
    header has room.
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
        """Position behind it."""
        return self.position + self.size_bytes

    @property
    def is_cut_off(self) -> bool:
        """Whether the file ends before it does."""
        return self.problem == _CUT_OFF


class Bounds(NamedTuple):
    """What a file's offsets and positions can be: the file ends at ``end``, and its last offset is at most ``last_offset``."""

    end: int
    last_offset: int = LARGEST_OFFSET


def walk(file: File, bounds: Bounds, next_offset: int, position: int = 0) -> Iterator[Stretch]:
    """Yield what the file holds from *position* on, where a batch of *next_offset* or a later one begins.

    Together the stretches cover every byte up to the end.
    """
    window = Window(file)
    held: Stretch | None = None
    expected = next_offset
    while position < bounds.end:
        found = _judge(window, position, bounds, next_offset)
        if held is not None and not held.problem and held.base_offset > expected and found.problem:
            behind = _contradiction(window, held, bounds, expected)
            if behind is not None:
                held = held._replace(
                    problem=_OUT_OF_ORDER,
                    size_bytes=behind.position - held.position,
                    base_offset=expected,
                    last_offset=behind.base_offset - 1,
                )
                found, next_offset = behind, expected
        if held is not None:
            yield held
        if found.problem:
            found = _damaged(window, found, bounds, next_offset)
        else:
            expected, next_offset = next_offset, found.last_offset + 1
        held, position = found, found.end
    if held is not None:
        yield held


def batch_at(file: File, position: int, bounds: Bounds, next_offset: int) -> Stretch:
    """What begins at a position, where a batch of *next_offset* or a later one should; nothing behind it is read."""
    return _judge(Window(file), position, bounds, next_offset)


_OUT_OF_ORDER = "its offset contradicts the batches beside it"
_CUT_OFF = "it is cut off"
_CHECKSUM = "it does not match its checksum"


def _contradiction(window: Window, held: Stretch, bounds: Bounds, expected: int) -> Stretch | None:
    """The sound batch behind *held*, which jumped ahead of *expected*, if not that one has the wrong offset but *held*."""
    found = _judge(window, held.end, bounds, expected)
    behind = _next_sound(window, found, bounds, expected) if found.problem else found
    return behind if behind is not None and behind.base_offset <= held.last_offset else None


def _judge(window: Window, position: int, bounds: Bounds, next_offset: int) -> Stretch:
    """Read what begins at a position; a damaged one has the size that it claims, or 0 if that cannot be."""
    start = window.get(position, min(HEADER_SIZE, bounds.end - position))
    if len(start) <= _MAGIC_AT:
        return Stretch(position, 0, next_offset, -1, _CUT_OFF)
    stretch = _read(start, position)
    if stretch is None:
        return Stretch(position, 0, next_offset, -1, f"it has format version {start[_MAGIC_AT]}, which does not exist")
    problem, size_bytes = _objection(window, stretch, bounds, next_offset), stretch.size_bytes
    if not problem:
        return stretch
    fits = size_bytes >= LENGTH_END + _SMALLEST[stretch.magic] and stretch.end <= bounds.end
    return stretch._replace(problem=problem, size_bytes=size_bytes if fits else 0)


def _objection(window: Window, stretch: Stretch, bounds: Bounds, next_offset: int) -> str:
    """Why a stretch is not to be believed; "" when it is."""
    _, size_bytes, first_offset, last_offset, _, magic, _, _, crc, _ = stretch
    if size_bytes < LENGTH_END + _SMALLEST[magic]:
        return f"a length of {size_bytes - LENGTH_END} cannot be"
    if stretch.end > bounds.end:
        return _CUT_OFF
    if _checksum(window, stretch) != crc:
        return _CHECKSUM
    return "" if next_offset <= first_offset <= last_offset <= bounds.last_offset else _OUT_OF_ORDER


def _read(start: memoryview, position: int) -> Stretch | None:
    """What the header says, of whatever format; None when there is no such format or no room for a header of it."""
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


def _checksum(window: Window, stretch: Stretch) -> int:
    if stretch.header is not None:
        return window.checksum(stretch.position + CRC_END, stretch.end, crc32c)
    return window.checksum(stretch.position + _LEGACY_CRC_END, stretch.end, zlib.crc32)


def _damaged(window: Window, found: Stretch, bounds: Bounds, next_offset: int) -> Stretch:
    """The damage that begins with *found*, up to the next sound batch."""
    behind = _next_sound(window, found, bounds, next_offset)
    end, last_offset = (behind.position, behind.base_offset - 1) if behind else (bounds.end, -1)
    return found._replace(size_bytes=end - found.position, base_offset=next_offset, last_offset=last_offset)


def _next_sound(window: Window, found: Stretch, bounds: Bounds, next_offset: int) -> Stretch | None:
    """The sound batch where *found* says that it ends, unless that skips offsets: its length may be wrong by just some batches."""
    claimed = _judge(window, found.end, bounds, next_offset) if found.position < found.end < bounds.end else None
    if claimed is not None and not claimed.problem and claimed.base_offset == found.last_offset + 1:
        return claimed
    return _search(window, found, bounds, next_offset)


def _search(window: Window, found: Stretch, bounds: Bounds, next_offset: int) -> Stretch | None:
    """Look at every byte behind the beginning of *found* for a sound batch."""
    pattern = _beginnings(next_offset, min(bounds.last_offset, next_offset + 2**31))
    start, left_bytes = found.position + 1, MOST_SEARCHED_BYTES
    while start + LENGTH_END < bounds.end:
        data = window.get(start, min(CHUNK_BYTES, bounds.end - start))
        for match in pattern.finditer(bytes(data)):
            at = match.start()
            if left_bytes < 0 and int.from_bytes(data[at + 8 : at + LENGTH_END], "big") > CHUNK_BYTES:
                continue
            candidate = _judge(window, start + at, bounds, next_offset)
            if not candidate.problem:
                return candidate
            left_bytes -= candidate.size_bytes
        start += max(1, len(data) - _MAGIC_AT)
    return None


def _beginnings(first_offset: int, last_offset: int) -> re.Pattern[bytes]:
    """What the first 17 bytes of a batch must look like; few others do, also among zeros."""
    first, last = first_offset.to_bytes(8, "big"), last_offset.to_bytes(8, "big")
    same = next((length for length in range(8) if first[length] != last[length]), 8)
    return re.compile(b"(?s)(?=%s.{%d}(?!\0{4}).{8}[\0\1\2])" % (re.escape(first[:same]), 8 - same))
