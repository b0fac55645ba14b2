"""The two sparse indexes of a segment, in Kafka's file format (docs/format/offset-index.md, time-index.md).

Both are kept as columns of plain machine integers, so that a lookup is one bisection in C and an entry
costs eight or twelve bytes. The file is written as a whole when the segment stops growing; until then an
unclean stop loses nothing, because recovery rebuilds the entries from the log.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right

OFFSET_ENTRY_SIZE = 8
TIME_ENTRY_SIZE = 12
MAX_RELATIVE_OFFSET = 2**31 - 1
REBUILD_INTERVAL_BYTES = 4096
"""How far apart the entries are that are made from a log file, when nobody knows the topic's configs."""

_LITTLE_ENDIAN = sys.byteorder == "little"


class CorruptIndexError(Exception):
    """An index file that cannot belong to its segment; it has to be rebuilt from the log."""


def _big_endian_ints(data: bytes) -> array[int]:
    column = array("i")
    column.frombytes(data)
    if _LITTLE_ENDIAN:
        column.byteswap()
    return column


class OffsetIndex:
    """(last offset of a batch -> where the batch begins in the file), ascending.

    Offsets are kept relative to the segment's base offset, as in the file.
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
        # The column that is searched comes last: another thread may be looking something up.
        self.positions.append(position)
        self.relative_offsets.append(last_offset - self.base_offset)

    def lookup(self, offset: int) -> int:
        """Position of a batch at or before the one that holds `offset`; 0 when the index does not know."""
        slot = bisect_right(self.relative_offsets, min(offset - self.base_offset, MAX_RELATIVE_OFFSET)) - 1
        return self.positions[slot] if slot >= 0 else 0

    def offset_behind(self, position: int) -> int | None:
        """The last offset of a batch that begins at *position* or later, the first that the index knows; None without one."""
        count = len(self)
        slot = bisect_left(self.positions, position, 0, count)
        return self.base_offset + self.relative_offsets[slot] if slot < count else None

    def truncate_to(self, offset: int) -> None:
        """Forget every entry for an offset >= `offset`."""
        keep = bisect_left(self.relative_offsets, min(offset - self.base_offset, MAX_RELATIVE_OFFSET))
        del self.relative_offsets[keep:], self.positions[keep:]

    def encode(self) -> bytes:
        """The file's contents."""
        entries = array("i", bytes(OFFSET_ENTRY_SIZE * len(self)))
        entries[0::2] = self.relative_offsets
        entries[1::2] = self.positions
        if _LITTLE_ENDIAN:
            entries.byteswap()
        return entries.tobytes()

    @classmethod
    def decode(cls, base_offset: int, data: bytes, segment_size_bytes: int) -> OffsetIndex:
        """Read a file's contents; CorruptIndexError when they cannot describe a segment of that size."""
        if len(data) % OFFSET_ENTRY_SIZE:
            raise CorruptIndexError(f"an offset index of {len(data)} bytes is no whole number of entries")
        index = cls(base_offset)
        entries = _big_endian_ints(data)
        index.relative_offsets, index.positions = entries[0::2], entries[1::2]
        if index.relative_offsets:
            index._check(segment_size_bytes)
        return index

    def _check(self, segment_size_bytes: int) -> None:
        # First and last entry tell: a process that died leaves zeros at the end of a preallocated file.
        ascending = len(self) == 1 or self.relative_offsets[-1] > self.relative_offsets[0]
        if self.relative_offsets[0] < 0 or not ascending or not 0 <= self.positions[-1] < segment_size_bytes:
            raise CorruptIndexError("an offset index does not fit its segment")


class TimeIndex:
    """(largest timestamp so far -> last offset of the batch that has it), both ascending."""

    __slots__ = ("base_offset", "relative_offsets", "timestamps")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.relative_offsets = array("i")

    def __len__(self) -> int:
        return len(self.timestamps)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry unless the timestamp is no larger than the last one's."""
        if timestamp > (self.timestamps[-1] if self.timestamps else -1):
            self.relative_offsets.append(offset - self.base_offset)
            self.timestamps.append(timestamp)  # last, as in the offset index

    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) when there is none."""
        if not self.timestamps:
            return -1, self.base_offset
        return self.timestamps[-1], self.base_offset + self.relative_offsets[-1]

    def lookup(self, timestamp: int) -> int:
        """An offset before which no record is as late as `timestamp`."""
        slot = bisect_right(self.timestamps, timestamp) - 1
        return self.base_offset + (self.relative_offsets[slot] if slot >= 0 else 0)

    def truncate_to(self, offset: int) -> None:
        """Forget every entry for an offset >= `offset`."""
        keep = bisect_left(self.relative_offsets, min(offset - self.base_offset, MAX_RELATIVE_OFFSET))
        del self.timestamps[keep:], self.relative_offsets[keep:]

    def encode(self) -> bytes:
        """The file's contents."""
        words = array("i", bytes(TIME_ENTRY_SIZE * len(self)))
        # A timestamp is two 32-bit words; in a byte-swapped column its high word is the one that comes second.
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
        """Read a file's contents; CorruptIndexError when they are not a time index."""
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
