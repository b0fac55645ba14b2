"""Damaged batches: readers meet them, the log records them, reads of them fail, and others skip them."""

from __future__ import annotations

import errno
import logging

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.segment.corruption import BadBatch, CorruptDataError
from kafkacompat.storage.segment.header_scan import ColdDataError, find_batch
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    fill_log,
    make_batch,
    name_file,
    read_headers,
    read_log,
    rewrite_file,
    roll_log,
)

SIZE = len(make_batch())
COUNT = 10
BAD = 4
"""The damaged batch, and its only offset."""
HEADER_BYTES = (0, 8, 9, 16, 20, 26)
"""Bytes of the base offset, length, format, checksum and last offset delta."""


def damaged_log(store: Store, byte: int, *, sealed: bool = True, index: int = BAD) -> Log:
    """Create a log of batches of one record, and flip a bit of one of them."""
    log = create_log(store, index_interval_bytes=3 * SIZE)
    fill_log(log, COUNT)
    if sealed:
        roll_log(log)
        append_batch(log, make_batch(timestamp=NOW_MS + COUNT))
    damage_batch(store, index, byte)
    log.state.recent_batches.clear()
    return log


def damage_batch(store: Store, index: int, byte: int) -> None:
    def flip(data: bytes) -> bytes:
        flipped = bytearray(data)
        flipped[index * SIZE + byte] ^= 0x40
        return bytes(flipped)

    rewrite_file(store, name_file(0, ".log"), flip)


def catch_damage(log: Log, offset: int) -> CorruptDataError:
    with pytest.raises(CorruptDataError) as caught:
        read_log(log, offset)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    return caught.value


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("byte", [*HEADER_BYTES, SIZE - 1])
def test_around_a_batch_known_bad_everything_can_be_read(memory: Store, byte: int, sealed: bool) -> None:
    log = damaged_log(memory, byte, sealed=sealed)
    log.examiner.examine(log.segments[0])
    assert log.examiner.corrupt == {0: (BadBatch(BAD * SIZE, SIZE, BAD, BAD),)}
    assert [header.base_offset for header in read_headers(read_log(log, 0))] == [0, 1, 2, 3]
    assert catch_damage(log, BAD).next_offset == BAD + 1
    for offset in range(BAD + 1, COUNT):
        assert read_headers(read_log(log, offset))[0].base_offset == offset
    assert read_log(log, 2, SIZE * 100) == read_log(log, 2, SIZE * 2)


@pytest.mark.parametrize("index", [0, COUNT - 1])
def test_the_first_and_the_last_batch_of_a_segment(memory: Store, index: int) -> None:
    log = damaged_log(memory, 30, index=index)
    log.examiner.examine(log.segments[0])
    (bad,) = log.examiner.corrupt[0]
    assert (bad.first_offset, bad.last_offset) == (index, index)
    assert catch_damage(log, index).next_offset == index + 1
    assert read_headers(read_log(log, index + 1))[0].base_offset == index + 1


@pytest.mark.parametrize("flipped", [0x80, 0x40, 0xFF])
def test_a_length_that_leads_nowhere_is_neither_followed_nor_passed_over(memory: Store, flipped: int) -> None:
    log = damaged_log(memory, 8, index=1)
    for offset in (2, 9):
        if log.segments[0].indexes()[0].lookup(offset) == 0:
            assert catch_damage(log, offset).next_offset is None
    log.reader.warm(2)
    assert log.examiner.corrupt == {0: (BadBatch(SIZE, SIZE, 1, 1),)}
    assert catch_damage(log, 1).next_offset == 2
    assert read_headers(read_log(log, 2))[0].base_offset == 2


@pytest.mark.parametrize("byte", [7, 26])
def test_a_last_batch_with_an_earlier_offset_does_not_end_reads(memory: Store, byte: int) -> None:
    """Otherwise a reader at the end would wait forever."""
    log = create_log(memory)
    fill_log(log, COUNT - 1)
    append_batch(log, make_batch(4))
    rewrite_file(memory, name_file(0, ".log"), lambda data: flip_last(data, byte))
    log.state.recent_batches.clear()
    offset = log.log_end_offset - 1
    assert catch_damage(log, offset).next_offset is None
    log.reader.warm(offset)
    assert catch_damage(log, offset).next_offset == log.log_end_offset


def flip_last(data: bytes, byte: int) -> bytes:
    flipped = bytearray(data)
    flipped[(COUNT - 1) * SIZE + byte] = 0
    return bytes(flipped)


def test_damage_is_logged_once(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    log = damaged_log(memory, 40)
    with caplog.at_level(logging.ERROR):
        log.examiner.examine(log.segments[0])
        log.examiner.examine(log.segments[0])
    (message,) = caplog.messages
    assert (
        f"{name_file(0, '.log')} is damaged: bytes {BAD * SIZE} to {(BAD + 1) * SIZE - 1}, offsets 4 to 4," in message
    )


def test_a_truncated_segment_forgets_damage_that_was_cut_off(memory: Store) -> None:
    log = damaged_log(memory, 40, sealed=False)
    log.examiner.examine(log.segments[0])
    log.trimmer.truncate_to(BAD)
    assert log.examiner.corrupt == {}


@pytest.mark.parametrize("byte", [8, 16, 30, SIZE - 1])
def test_a_search_by_time_skips_damage(memory: Store, byte: int) -> None:
    log = damaged_log(memory, byte)
    for index in range(COUNT):
        record = log.reader.offset_for_timestamp(NOW_MS + index)
        assert record is not None
        if index != BAD:
            assert (record.offset, record.timestamp) == (index, NOW_MS + index)
    record = log.reader.offset_for_timestamp(NOW_MS + BAD)
    assert record is not None and record.offset in (BAD, BAD + 1)


def test_a_search_for_a_record_in_a_damaged_batch_finds_the_next(memory: Store) -> None:
    log = damaged_log(memory, SIZE - 1)
    record = log.reader.offset_for_timestamp(NOW_MS + BAD)
    assert record is not None and record.offset == BAD + 1
    assert list(log.examiner.corrupt) == [0]


def test_an_index_that_leads_to_no_batch_is_rebuilt(memory: Store) -> None:
    log = damaged_log(memory, 40)
    damage_batch(memory, BAD, 40)
    segment = log.segments[0]
    sound = memory.files.read(segment.files.path(".index"))
    rewrite_file(memory, name_file(0, ".index"), lambda data: data[:7] + bytes([data[7] ^ 4]) + data[8:])
    segment.unload()
    first = segment.indexes()[0].relative_offsets[0]
    assert catch_damage(log, first).next_offset is None
    log.reader.warm(first)
    assert read_headers(read_log(log, first))[0].base_offset == first
    assert log.examiner.corrupt == {}
    assert memory.files.read(segment.files.path(".index")) != sound  # with another interval, but correct
    assert [read_headers(read_log(log, offset))[0].base_offset for offset in range(COUNT)] == list(range(COUNT))


def test_a_bad_index_beside_a_bad_batch_is_rebuilt(memory: Store) -> None:
    bad = BAD + 2
    log = damaged_log(memory, 40, index=bad)
    segment = log.segments[0]
    rewrite_file(memory, name_file(0, ".index"), lambda data: data[:7] + bytes([data[7] ^ 4]) + data[8:])
    segment.unload()
    first = segment.indexes()[0].relative_offsets[0]
    assert first < bad and catch_damage(log, first).next_offset is None
    log.reader.warm(first)
    assert log.examiner.corrupt == {0: (BadBatch(bad * SIZE, SIZE, bad, bad),)}
    for offset in [candidate for candidate in range(COUNT) if candidate != bad]:
        assert read_headers(read_log(log, offset))[0].base_offset == offset
    assert catch_damage(log, bad).next_offset == bad + 1


@pytest.mark.parametrize("wrong_bytes", [2 * SIZE, 1 << 20])
def test_an_index_that_leads_too_far_hides_no_batches(memory: Store, wrong_bytes: int) -> None:
    log = damaged_log(memory, 40)
    damage_batch(memory, BAD, 40)
    segment = log.segments[0]
    offset_index = segment.indexes()[0]
    first, position = offset_index.relative_offsets[0], offset_index.positions[0] + wrong_bytes
    rewrite_file(memory, name_file(0, ".index"), lambda data: data[:4] + position.to_bytes(4, "big") + data[8:])
    segment.unload()
    assert catch_damage(log, first).next_offset is None
    log.reader.warm(first)
    assert log.examiner.corrupt == {}
    assert [read_headers(read_log(log, offset))[0].base_offset for offset in range(COUNT)] == list(range(COUNT))


@pytest.mark.parametrize("wrong_bytes", [2 * SIZE, 1 << 20])
def test_a_search_by_time_survives_an_index_that_leads_too_far(memory: Store, wrong_bytes: int) -> None:
    log = damaged_log(memory, 40)
    damage_batch(memory, BAD, 40)
    offset_index = log.segments[0].indexes()[0]
    first = offset_index.relative_offsets[0]
    offset_index.positions[0] += wrong_bytes
    for offset in (first, first + 1):
        record = log.reader.offset_for_timestamp(NOW_MS + offset)
        assert record is not None and record.offset == offset


@pytest.mark.parametrize("wrong_bytes", [2 * SIZE, 5, 1 << 20])
def test_the_indexes_of_the_active_segment_are_rebuilt_too(memory: Store, wrong_bytes: int) -> None:
    """A clean start trusts the index file."""
    log = damaged_log(memory, 40, sealed=False)
    damage_batch(memory, BAD, 40)
    offset_index = log.segments.active.indexes()[0]
    first = offset_index.relative_offsets[0]
    offset_index.positions[0] += wrong_bytes
    assert catch_damage(log, first).next_offset is None
    log.reader.warm(first)
    assert log.examiner.corrupt == {} and log.segments.active.indexes_changed
    append_batch(log, make_batch(timestamp=NOW_MS + COUNT))
    log.state.recent_batches.clear()
    assert [read_headers(read_log(log, offset))[0].base_offset for offset in range(COUNT + 1)] == list(range(COUNT + 1))
    roll_log(log)
    assert log.segments[0].indexes()[1].last() == (NOW_MS + COUNT, COUNT)


@pytest.mark.parametrize("byte", [0, 1, 3])
def test_lost_indexes_are_rebuilt_around_offsets_that_do_not_fit(memory: Store, byte: int) -> None:
    log = create_log(memory, index_interval_bytes=SIZE)
    fill_log(log, 3)
    append_batch(log, make_batch(size_bytes=5000))
    fill_log(log, COUNT)
    roll_log(log)
    append_batch(log, make_batch())
    size_bytes = log.segments[0].size_bytes
    damage_batch(memory, 2, byte)
    rewrite_file(memory, name_file(0, ".index"), lambda _: bytes(7) + b"\x01" + size_bytes.to_bytes(8, "big"))
    log.segments[0].unload()
    log.state.recent_batches.clear()
    assert read_headers(read_log(log, 5))[0].base_offset == 5
    log.examiner.examine(log.segments[0])
    assert catch_damage(log, 2).next_offset == 3


class _Page:
    """A file with only its first bytes in the page cache."""

    def __init__(self, data: bytes, resident_bytes: int) -> None:
        self._data = data
        self._resident_bytes = resident_bytes

    def pread(self, size_bytes: int, position: int) -> bytes:
        return self._data[position : position + size_bytes]

    def pread_nowait(self, size_bytes: int, position: int) -> bytes | None:
        end = min(position + size_bytes, self._resident_bytes)
        return self._data[position:end] if position < end else None


def test_a_header_that_continues_in_a_cold_page_is_cold_not_absent() -> None:
    data = make_batch(base_offset=0) + make_batch(base_offset=1)
    file = _Page(data, SIZE + 5)
    with pytest.raises(ColdDataError):
        find_batch(file, 1, 0, len(data), may_block=False)  # type: ignore[arg-type]
    place = find_batch(file, 1, 0, len(data), may_block=True)  # type: ignore[arg-type]
    assert place is not None and place.position == SIZE


def test_a_deleted_segment_is_not_examined(memory: Store) -> None:
    log = damaged_log(memory, 40)
    gone = log.segments[0]
    log.trimmer.detach([gone])
    log.trimmer.delete_segments([gone])
    assert not log.examiner.examine(gone)
    log.examiner.examine_and_reindex(gone)
    assert not log.offline


def test_a_disk_that_fails_while_a_segment_is_examined_takes_the_log_offline(memory: Store) -> None:
    log = damaged_log(memory, 40)
    assert isinstance(memory.files, MemoryFiles)
    memory.files.fail_on("pread", errno.EIO)
    with pytest.raises(KafkaError) as failed:
        log.examiner.examine(log.segments[0])
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR and log.offline
