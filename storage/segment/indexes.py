"""The two sparse indexes of a segment, in Kafka's file format (docs/format/offset-index.md, time-index.md).

Both are columns of machine integers, so that a lookup is one bisection in C and an entry takes eight or twelve
bytes. A file is written as a whole when the segment stops growing. A crash before that loses nothing, because
recovery rebuilds the entries from the log.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right

OFFSET_ENTRY_SIZE = 8
TIME_ENTRY_SIZE = 12
MAX_RELATIVE_OFFSET = 2**31 - 1
REBUILD_INTERVAL_BYTES = 4096
"""Bytes between index entries that are rebuilt where the topic's index.interval.bytes is unknown."""

_LITTLE_ENDIAN = sys.byteorder == "little"


class CorruptIndexError(Exception):
    """An index file does not fit its segment and has to be rebuilt from the log."""


def _big_endian_ints(data: bytes) -> array[int]:
    column = array("i")
    column.frombytes(data)
    if _LITTLE_ENDIAN:
        column.byteswap()
    return column


class OffsetIndex:
    """The sparse index from the last offset of a batch to the batch's position in the file; both ascend.

    Offsets are relative to the segment's base offset, as in the file.
    """

    __slots__ = ("base_offset", "positions", "relative_offsets")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.relative_offsets = array("i")
        self.positions = array("i")

    def __len__(self) -> int:
        return len(self.relative_offsets)

    def append(self, last_offset: int, position: int) -> None:
        """Add an entry; the offset must be larger than every one before."""
        # The searched column grows last: another thread may be searching it.
        self.positions.append(position)
        self.relative_offsets.append(last_offset - self.base_offset)

    def lookup(self, offset: int) -> int:
        """Return the position of a batch at or before the one that holds `offset`; 0 without an entry for one."""
        slot = bisect_right(self.relative_offsets, min(offset - self.base_offset, MAX_RELATIVE_OFFSET)) - 1
        return self.positions[slot] if slot >= 0 else 0

    def last_offset_from(self, position: int) -> int | None:
        """Return the last offset of the first indexed batch at `position` or later; None without one."""
        count = len(self)
        slot = bisect_left(self.positions, position, 0, count)
        return self.base_offset + self.relative_offsets[slot] if slot < count else None

    def truncate_to(self, offset: int) -> None:
        """Drop every entry for `offset` or a later one."""
        keep = bisect_left(self.relative_offsets, min(offset - self.base_offset, MAX_RELATIVE_OFFSET))
        del self.relative_offsets[keep:], self.positions[keep:]

    def encode(self) -> bytes:
        """Encode the file's contents."""
        entries = array("i", bytes(OFFSET_ENTRY_SIZE * len(self)))
        entries[0::2] = self.relative_offsets
        entries[1::2] = self.positions
        if _LITTLE_ENDIAN:
            entries.byteswap()
        return entries.tobytes()

    @classmethod
    def decode(cls, base_offset: int, data: bytes, segment_size_bytes: int) -> OffsetIndex:
        """Decode a file's contents. Raises CorruptIndexError if they do not fit a segment of that size."""
        if len(data) % OFFSET_ENTRY_SIZE:
            raise CorruptIndexError(f"an offset index of {len(data)} bytes is no whole number of entries")
        index = cls(base_offset)
        entries = _big_endian_ints(data)
        index.relative_offsets, index.positions = entries[0::2], entries[1::2]
        if index.relative_offsets:
            index._check(segment_size_bytes)
        return index

    def _check(self, segment_size_bytes: int) -> None:
        # First and last entry suffice: a process that died leaves zeros at the end of a preallocated file.
        ascending = len(self) == 1 or self.relative_offsets[-1] > self.relative_offsets[0]
        if self.relative_offsets[0] < 0 or not ascending or not 0 <= self.positions[-1] < segment_size_bytes:
            raise CorruptIndexError("an offset index does not fit its segment")


class TimeIndex:
    """The sparse index from the largest timestamp so far to the last offset of its batch; both ascend."""

    __slots__ = ("base_offset", "relative_offsets", "timestamps")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.relative_offsets = array("i")

    def __len__(self) -> int:
        return len(self.timestamps)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the timestamp is larger than the last one's."""
        if timestamp > (self.timestamps[-1] if self.timestamps else -1):
            self.relative_offsets.append(offset - self.base_offset)
            self.timestamps.append(timestamp)  # last, as in the offset index

    def last(self) -> tuple[int, int]:
        """Return (timestamp, offset) of the last entry; (-1, base offset) without entries."""
        if not self.timestamps:
            return -1, self.base_offset
        return self.timestamps[-1], self.base_offset + self.relative_offsets[-1]

    def lookup(self, timestamp: int) -> int:
        """Return an offset before which no record has `timestamp` or a later one."""
        slot = bisect_right(self.timestamps, timestamp) - 1
        return self.base_offset + (self.relative_offsets[slot] if slot >= 0 else 0)

    def truncate_to(self, offset: int) -> None:
        """Drop every entry for `offset` or a later one."""
        keep = bisect_left(self.relative_offsets, min(offset - self.base_offset, MAX_RELATIVE_OFFSET))
        del self.timestamps[keep:], self.relative_offsets[keep:]

    def encode(self) -> bytes:
        """Encode the file's contents."""
        words = array("i", bytes(TIME_ENTRY_SIZE * len(self)))
        # A timestamp is two 32-bit words; in a byte-swapped column the high word is the second.
        halves = array("i", self.timestamps.tobytes())
        high, low = (1, 0) if _LITTLE_ENDIAN else (0, 1)
        words[0::3] = halves[high::2]
        words[1::3] = halves[low::2]
        words[2::3] = self.relative_offsets
        if _LITTLE_ENDIAN:
            words.byteswap()
        return words.tobytes()

    @classmethod
    def decode(cls, base_offset: int, data: bytes) -> TimeIndex:
        """Decode a file's contents. Raises CorruptIndexError if they are no time index."""
        if len(data) % TIME_ENTRY_SIZE:
            raise CorruptIndexError(f"a time index of {len(data)} bytes is no whole number of entries")
        index = cls(base_offset)
        words = _big_endian_ints(data)
        halves = array("i", bytes(8 * (len(words) // 3)))
        high, low = (1, 0) if _LITTLE_ENDIAN else (0, 1)
        halves[high::2] = words[0::3]
        halves[low::2] = words[1::3]
        index.timestamps.frombytes(halves.tobytes())
        index.relative_offsets = words[2::3]
        if index.timestamps and (index.timestamps[-1] < index.timestamps[0] or index.relative_offsets[-1] < 0):
            raise CorruptIndexError("a time index whose last entry is earlier than its first")
        return index
