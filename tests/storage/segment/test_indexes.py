"""The sparse indexes: lookups, and Kafka's bytes."""

from __future__ import annotations

import pytest

from kafkacompat.storage.segment.indexes import CorruptIndexError, OffsetIndex, TimeIndex


def offset_index(*entries: tuple[int, int], base: int = 100) -> OffsetIndex:
    index = OffsetIndex(base)
    for last_offset, position in entries:
        index.append(last_offset, position)
    return index


def time_index(*entries: tuple[int, int], base: int = 100) -> TimeIndex:
    index = TimeIndex(base)
    for timestamp, offset in entries:
        index.maybe_append(timestamp, offset)
    return index


@pytest.mark.parametrize(
    ("offset", "position"), [(0, 0), (100, 0), (109, 0), (110, 500), (111, 500), (119, 500), (120, 900), (10**15, 900)]
)
def test_an_offset_is_looked_up_at_or_before_its_batch(offset: int, position: int) -> None:
    assert offset_index((110, 500), (120, 900)).lookup(offset) == position


def test_an_empty_index_points_at_the_beginning() -> None:
    assert offset_index().lookup(105) == 0
    assert time_index().lookup(7) == 100
    assert time_index().last() == (-1, 100)


def test_offset_entries_are_two_big_endian_ints_relative_to_the_base() -> None:
    data = offset_index((110, 500), (100 + 2**31 - 1, 2**31 - 1)).encode()
    assert data == bytes.fromhex("0000000a 000001f4 7fffffff 7fffffff")
    again = OffsetIndex.decode(100, data, 2**31)
    assert (list(again.relative_offsets), list(again.positions)) == ([10, 2**31 - 1], [500, 2**31 - 1])


def test_time_entries_are_a_long_and_an_int() -> None:
    data = time_index((1, 101), (0x0102030405060708, 300)).encode()
    assert data == bytes.fromhex("0000000000000001 00000001 0102030405060708 000000c8")
    again = TimeIndex.decode(100, data)
    assert (list(again.timestamps), list(again.relative_offsets)) == ([1, 0x0102030405060708], [1, 200])


def test_time_entries_only_grow() -> None:
    index = time_index((5, 101), (5, 102), (4, 103), (-1, 104), (6, 105))
    assert list(index.timestamps) == [5, 6]
    assert index.last() == (6, 105)


@pytest.mark.parametrize(("timestamp", "offset"), [(4, 100), (5, 101), (6, 101), (9, 105), (10**18, 105)])
def test_a_timestamp_is_looked_up_at_the_last_entry_not_after_it(timestamp: int, offset: int) -> None:
    assert time_index((5, 101), (9, 105)).lookup(timestamp) == offset


@pytest.mark.parametrize(("offset", "kept"), [(0, 0), (110, 0), (111, 1), (120, 1), (121, 2), (10**15, 2)])
def test_truncation_drops_the_offset_and_all_later_ones(offset: int, kept: int) -> None:
    index = offset_index((110, 500), (120, 900))
    index.truncate_to(offset)
    assert len(index) == kept
    times = time_index((5, 110), (9, 120))
    times.truncate_to(offset)
    assert len(times) == kept


@pytest.mark.parametrize(
    "data",
    [
        bytes(7),
        bytes.fromhex("0000000a 000001f4 00000000 00000000"),  # the zeros of a preallocated file
        bytes.fromhex("0000000a 000003e8"),  # after the segment's end
        bytes.fromhex("fffffff6 00000000"),
        bytes.fromhex("0000000a ffffffff"),
    ],
)
def test_an_offset_index_that_cannot_be_right_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptIndexError):
        OffsetIndex.decode(100, data, 1000)


@pytest.mark.parametrize(
    "data",
    [
        bytes(11),
        bytes.fromhex("0000000000000005 00000001 0000000000000004 00000002"),
        bytes.fromhex("0000000000000005 ffffffff"),
    ],
)
def test_a_time_index_that_cannot_be_right_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptIndexError):
        TimeIndex.decode(100, data)
