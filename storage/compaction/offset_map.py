"""From keys to the last offsets they have, in memory of a fixed size."""

from __future__ import annotations

from hashlib import blake2b
from mmap import mmap
from struct import Struct

ENTRY_BYTES = 24
"""A digest of sixteen bytes, which stands for the key, and the offset."""

_ENTRY = Struct("<QQq")
_DIGEST = Struct("<QQ")
_DIGEST_BYTES = 16


class OffsetMap:
    """A hash table with open addressing; ``capacity`` is how many keys it takes at most.

    Memory is taken from the system as entries come: a table that stays sparse costs little. Raises MemoryError.
    """

    def __init__(self, capacity: int, load_factor: float) -> None:
        self.capacity = max(capacity, 1)
        self._slots = _prime_from(int(self.capacity / load_factor) + 2)
        try:
            self._table = mmap(-1, self._slots * ENTRY_BYTES)
        except OSError as error:
            # No fault of a disk, which any other error of this kind would be.
            raise MemoryError(f"there are no {self._slots * ENTRY_BYTES} bytes for the keys of a compaction") from error
        self._keys = 0
        self.latest_offset = -1
        """Up to this offset the map knows every key."""

    @classmethod
    def of_bytes(cls, size_bytes: int, load_factor: float, most_keys: int) -> OffsetMap:
        """One that takes so much memory, or less if there cannot be more than `most_keys`."""
        return cls(min(int(size_bytes // ENTRY_BYTES * load_factor), most_keys), load_factor)

    def __len__(self) -> int:
        return self._keys

    def put(self, key: bytes, offset: int) -> bool:
        """Note the offset of a key, which is larger than those before; False when there is no room for further keys.

        Then it takes not even those that it has, as in Kafka.
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
        """The last offset noted for a key, -1 for none."""
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
        """Give the memory back."""
        self._table.close()


def _prime_from(number: int) -> int:
    """The first prime that is not smaller: any step leads through all slots then."""
    number |= 1
    while any(number % divisor == 0 for divisor in range(3, int(number**0.5) + 1, 2)):
        number += 2
    return number
