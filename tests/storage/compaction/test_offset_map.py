"""The map of keys: its capacity and its memory."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacompat.storage.compaction import offset_map
from kafkacompat.storage.compaction.offset_map import ENTRY_BYTES, OffsetMap


@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 2**63 - 1))), st.integers(1, 60))
def test_the_map_has_the_last_offset_of_each_key_until_it_is_full(puts: list[tuple[bytes, int]], capacity: int) -> None:
    table = OffsetMap(capacity, 0.9)
    known: dict[bytes, int] = {}
    for key, offset in puts:
        assert table.put(key, offset) == (len(known) < capacity)
        if len(known) < capacity:
            known[key] = offset
    assert len(table) == len(known)
    for key in {key for key, _ in puts}:
        assert table.get(key) == known.get(key, -1)
    table.close()


def test_keys_with_the_same_slot_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    class Digest:
        def __init__(self, key: bytes, digest_size: int) -> None:
            self._key = key

        def digest(self) -> bytes:
            return b"12345678" + self._key.rjust(8, b"\1")

    monkeypatch.setattr(offset_map, "blake2b", Digest)
    table = OffsetMap(500, 0.99)
    for number in range(500):
        assert table.put(b"%d" % number, number)
    assert [table.get(b"%d" % number) for number in range(501)] == [*range(500), -1]


def test_the_map_takes_the_memory_that_it_may_take() -> None:
    assert OffsetMap.of_bytes(24_000, 0.9, most_keys=1 << 40).capacity == 900
    assert OffsetMap.of_bytes(24_000, 0.9, most_keys=50).capacity == 50
    assert OffsetMap.of_bytes(10, 0.9, most_keys=50).capacity == 1
    table = OffsetMap.of_bytes(24_000, 0.9, most_keys=1 << 40)
    assert len(table._table) <= 24_000 + 50 * ENTRY_BYTES


def test_too_little_memory_is_no_fault_of_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int, size_bytes: int) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(offset_map, "mmap", refuse)
    with pytest.raises(MemoryError, match="cannot allocate 72 bytes"):
        OffsetMap(1, 0.9)
