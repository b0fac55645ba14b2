"""The map from keys to their last offsets, in a fixed amount of memory."""

from __future__ import annotations

from hashlib import blake2b
from mmap import mmap
from struct import Struct

ENTRY_BYTES = 24
"""A digest of the key, sixteen bytes, and the offset."""

_ENTRY = Struct("<QQq")
_DIGEST = Struct("<QQ")
_DIGEST_BYTES = 16


class OffsetMap:
    """A hash table with open addressing for at most `capacity` keys.

    The system provides the memory as entries fill it, so a sparse table costs little. Raises MemoryError.
    """

    def __init__(self, capacity: int, load_factor: float) -> None:
        self.capacity = max(capacity, 1)
        self._slots = _prime_from(int(self.capacity / load_factor) + 2)
        try:
            self._table = mmap(-1, self._slots * ENTRY_BYTES)
        except OSError as error:
            # Any other OSError would count as a failure of the disk.
            raise MemoryError(f"a compaction cannot allocate {self._slots * ENTRY_BYTES} bytes for its keys") from error
        self._keys = 0
        self.latest_offset = -1
        """The map has every key up to this offset."""

    @classmethod
    def of_bytes(cls, size_bytes: int, load_factor: float, most_keys: int) -> OffsetMap:
        """Return a map of at most `size_bytes`, smaller if there are at most `most_keys`."""
        return cls(min(int(size_bytes // ENTRY_BYTES * load_factor), most_keys), load_factor)

    def __len__(self) -> int:
        return self._keys

    def put(self, key: bytes, offset: int) -> bool:
        """Set the offset of a key, which is larger than all before; returns False if the map is full.

        As in Kafka, a full map rejects known keys too.
        """
        if self._keys >= self.capacity:
            return False
        first, second = _DIGEST.unpack(blake2b(key, digest_size=_DIGEST_BYTES).digest())
        table, slots, slot = self._table, self._slots, first % self._slots
        while True:
            found_first, found_second, _ = _ENTRY.unpack_from(table, slot * ENTRY_BYTES)
            if found_first == first and found_second == second:
                break
            if not found_first and not found_second:
                self._keys += 1
                break
            slot = (slot + 1 + second % (slots - 1)) % slots
        _ENTRY.pack_into(table, slot * ENTRY_BYTES, first, second, offset)
        return True

    def get(self, key: bytes) -> int:
        """Return the last offset of a key, -1 for an unknown one."""
        first, second = _DIGEST.unpack(blake2b(key, digest_size=_DIGEST_BYTES).digest())
        table, slots, slot = self._table, self._slots, first % self._slots
        while True:
            found_first, found_second, offset = _ENTRY.unpack_from(table, slot * ENTRY_BYTES)
            if found_first == first and found_second == second:
                return int(offset)
            if not found_first and not found_second:
                return -1
            slot = (slot + 1 + second % (slots - 1)) % slots

    def close(self) -> None:
        """Free the memory."""
        self._table.close()


def _prime_from(number: int) -> int:
    """Return the first prime from a number on: with it, any step visits all slots."""
    number |= 1
    while any(number % divisor == 0 for divisor in range(3, int(number**0.5) + 1, 2)):
        number += 2
    return number
