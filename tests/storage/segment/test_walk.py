"""Walking through damaged log files."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.storage.segment.walk import Bounds, Stretch, walk_log_file
from kafkacompat.storage.segment.window import Window
from kafkacompat.wire.message_set import make_entry_writer, wrap_messages
from kafkacompat.wire.record_batch import HEADER_SIZE, NewRecord, build_batch
from tests.fakes.memory_files import MemoryFiles

FIRST = 1000
SIZES = (3, 1, 5, 2, 4, 1)
CHECKED_FROM = 16


def make_batches(codec: int = 0) -> list[bytes]:
    made, offset = [], FIRST
    for size in SIZES:
        records: list[NewRecord] = [
            (1_700_000_000_000 + offset, b"k%d" % index, b"v" * 30, []) for index in range(size)
        ]
        made.append(build_batch(records, base_offset=offset, codec=codec, leader_epoch=1))
        offset += size
    return made


LAST = FIRST + sum(SIZES) - 1
BATCHES = make_batches()
STARTS = [sum(map(len, BATCHES[:index])) for index in range(len(BATCHES) + 1)]
OFFSETS = [FIRST + sum(SIZES[:index]) for index in range(len(BATCHES) + 1)]


def walk_data(data: bytes, first: int = FIRST, last: int = LAST) -> list[Stretch]:
    files = MemoryFiles()
    files.make_directory("/d")
    file = files.open("/d/x", create=True)
    file.append((data,), len(data))
    stretches = list(walk_log_file(file, Bounds(len(data), last), first))
    ends = [stretch.end for stretch in stretches]
    assert [stretch.position for stretch in stretches] == [0, *ends[:-1]][: len(stretches)]
    assert not stretches or stretches[-1].end == len(data)
    return stretches


def list_damage(data: bytes) -> list[tuple[int, int, int, int]]:
    return [
        (stretch.position, stretch.end, stretch.base_offset, stretch.last_offset)
        for stretch in walk_data(data)
        if stretch.problem
    ]


def test_a_sound_file_is_all_batches() -> None:
    stretches = walk_data(b"".join(BATCHES))
    assert [stretch.base_offset for stretch in stretches] == OFFSETS[:-1]
    assert not any(stretch.problem for stretch in stretches)
    assert [stretch.header.record_count for stretch in stretches if stretch.header] == list(SIZES)


def test_every_flipped_bit_of_a_batch_is_found_and_costs_no_other_batch() -> None:
    """Except for the leader epoch: no checksum covers it, and any number is valid."""
    index = 2
    data = b"".join(BATCHES)
    expected = (STARTS[index], STARTS[index + 1], OFFSETS[index], OFFSETS[index + 1] - 1)
    for position in range(STARTS[index], STARTS[index + 1]):
        at = position - STARTS[index]
        if 12 <= at < CHECKED_FROM:
            continue
        for bit in range(8) if at < HEADER_SIZE else (0, 7):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            assert list_damage(bytes(flipped)) == [expected], f"bit {bit} of byte {at}"


def test_the_first_and_the_last_batch_are_no_exception() -> None:
    data = b"".join(BATCHES)
    for index in (0, len(BATCHES) - 1):
        last = OFFSETS[index + 1] - 1 if index == 0 else -1
        for at in (0, 7, 8, 11, 16, 17, 24, HEADER_SIZE, len(BATCHES[index]) - 1):
            flipped = bytearray(data)
            flipped[STARTS[index] + at] ^= 0x40
            (damage,) = list_damage(bytes(flipped))
            assert damage[:3] == (STARTS[index], STARTS[index + 1], OFFSETS[index]), at
            assert damage[3] in (last, -1)


def test_batches_after_garbage_of_any_length_are_found() -> None:
    for size_bytes in (1, 5, 27, 61, 5000, 3 << 20):
        for filling in (b"\0", b"\xff", b"\2"):
            data = BATCHES[0] + filling * size_bytes + b"".join(BATCHES[2:])
            begin = len(BATCHES[0])
            assert list_damage(data) == [(begin, begin + size_bytes, OFFSETS[1], OFFSETS[2] - 1)]


@pytest.mark.parametrize("keep", [1, 12, 17, 60, 61, 70])
def test_an_end_that_is_cut_off(keep: int) -> None:
    data = b"".join(BATCHES[:3]) + BATCHES[3][:keep]
    assert list_damage(data) == [(STARTS[3], STARTS[3] + keep, OFFSETS[3], -1)]


def test_a_hole_in_the_offsets_is_no_damage() -> None:
    assert list_damage(BATCHES[0] + BATCHES[3] + BATCHES[5]) == []


def test_a_repeated_batch_is_damage() -> None:
    data = BATCHES[0] + BATCHES[1] + BATCHES[1] + BATCHES[2]
    assert [damage[0] for damage in list_damage(data)] == [STARTS[2]]


def message_sets(magic: int) -> list[bytes]:
    write = make_entry_writer(magic, 0)
    plain = [write(FIRST + index, 1_700_000_000_000, b"k", b"value") for index in range(3)]
    inner = b"".join(write(index if magic else FIRST + 3 + index, 1_700_000_000_000, None, b"x") for index in range(4))
    return [*plain, wrap_messages(magic, 1, FIRST + 6, 1_700_000_000_000, inner), write(FIRST + 7, 1, None, None)]


@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets_are_walked_too(magic: int) -> None:
    stretches = walk_data(b"".join(message_sets(magic)))
    assert [stretch.last_offset for stretch in stretches] == [FIRST, FIRST + 1, FIRST + 2, FIRST + 6, FIRST + 7]
    assert not any(stretch.problem for stretch in stretches)
    assert stretches[0].max_timestamp == (1_700_000_000_000 if magic else -1)


@pytest.mark.parametrize("magic", [0, 1])
def test_damage_in_a_message_set(magic: int) -> None:
    entries = message_sets(magic)
    data = b"".join(entries)
    begin, end = len(entries[0]) * 2, len(entries[0]) * 3
    for at in (8, 12, 16, 17, 25):
        flipped = bytearray(data)
        flipped[begin + at] ^= 0x20
        assert [damage[:2] for damage in list_damage(bytes(flipped))] == [(begin, end)], at


def test_zeros_at_the_end_take_no_time() -> None:
    damage = list_damage(BATCHES[0] + bytes(20 << 20))
    assert damage == [(len(BATCHES[0]), len(BATCHES[0]) + (20 << 20), OFFSETS[1], -1)]


@pytest.mark.parametrize("bit", [7, 8, 9])
def test_a_length_that_is_wrong_by_just_some_batches_takes_none_of_them_along(bit: int) -> None:
    same = [build_batch([(1_700_000_000_000, b"k", b"v" * 58, [])], base_offset=FIRST + index) for index in range(8)]
    assert {len(batch) for batch in same} == {128}
    data = bytearray(b"".join(same))
    data[2 * 128 + 11 - bit // 8] ^= 1 << bit % 8
    stretches = walk_data(bytes(data))
    assert [stretch.position for stretch in stretches] == [128 * index for index in range(8)]
    assert [stretch.base_offset for stretch in stretches if stretch.problem] == [FIRST + 2]


@pytest.mark.parametrize("next_byte", [HEADER_SIZE, 10, 16])
def test_an_offset_that_jumps_ahead_beside_other_damage_takes_none_along(next_byte: int) -> None:
    data = bytearray(b"".join(BATCHES))
    data[STARTS[1] + 6] ^= 4
    data[STARTS[2] + next_byte] ^= 0x40
    stretches = [stretch for stretch in walk_data(bytes(data), last=5000) if stretch.problem]
    assert [(stretch.position, stretch.end) for stretch in stretches] == [(STARTS[1], STARTS[3])]
    assert [(stretch.base_offset, stretch.last_offset) for stretch in stretches] == [(OFFSETS[1], OFFSETS[3] - 1)]


def test_a_search_does_not_read_all_for_each_of_many_false_beginnings(monkeypatch: pytest.MonkeyPatch) -> None:
    mebibyte, read_bytes = 1 << 20, 0
    checksum = Window.checksum

    def counted(self: Window, position: int, end: int, *arguments: Any) -> int:
        nonlocal read_bytes
        read_bytes += end - position
        return checksum(self, position, end, *arguments)

    beginning = (FIRST + 1).to_bytes(8, "big") + (2 * mebibyte).to_bytes(4, "big") + bytes(4) + b"\x02" + bytes(44)
    hostile = build_batch([(1_700_000_000_000, b"k", beginning * 3000, [])], base_offset=FIRST)
    large = build_batch([(1_700_000_000_000, b"k", bytes(3 * mebibyte), [])], base_offset=FIRST + 1)
    small = build_batch([(1_700_000_000_000, b"k", b"v", [])], base_offset=FIRST + 2)
    damaged = hostile[:8] + b"\x7f" + hostile[9:]
    monkeypatch.setattr(Window, "checksum", counted)
    monkeypatch.setattr("kafkacompat.storage.segment.walk.MOST_SEARCHED_BYTES", 20 * mebibyte)
    stretches = walk_data(damaged + large + small, last=FIRST + 2)
    assert stretches[-1].base_offset == FIRST + 2 and not stretches[-1].problem
    assert read_bytes < 40 * mebibyte
