"""Batches that are damaged: met by readers, remembered, refused, and passed by."""

from __future__ import annotations

import errno
import logging

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.segment.corruption import BadBatch, CorruptDataError
from kafkacompat.storage.segment.lookup import ColdDataError, find_batch
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import NOW_MS, Store, append, batch, create, fill, headers, name, read, rewrite, roll

SIZE = len(batch())
COUNT = 10
BAD = 4
"""The batch that is damaged, and its one offset."""
HEADER_BYTES = (0, 8, 9, 16, 20, 26)
"""In the base offset, the length, the format, the checksum, the last offset delta."""


def damaged_log(store: Store, byte: int, *, sealed: bool = True, index: int = BAD) -> Log:
    """A log of batches of one record, one of which has a flipped bit."""
    log = create(store, index_interval_bytes=3 * SIZE)
    fill(log, COUNT)
    if sealed:
        roll(log)
        append(log, batch(timestamp=NOW_MS + COUNT))
    damage(store, index, byte)
    log.state.recent_batches.clear()
    return log


def damage(store: Store, index: int, byte: int) -> None:
    def flip(data: bytes) -> bytes:
        flipped = bytearray(data)
        flipped[index * SIZE + byte] ^= 0x40
        return bytes(flipped)

    rewrite(store, name(0, ".log"), flip)


def refused(log: Log, offset: int) -> CorruptDataError:
    with pytest.raises(CorruptDataError) as caught:
        read(log, offset)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    return caught.value


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("byte", [*HEADER_BYTES, SIZE - 1])
def test_around_a_batch_known_bad_everything_can_be_read(memory: Store, byte: int, sealed: bool) -> None:
    log = damaged_log(memory, byte, sealed=sealed)
    log.examiner.examine(log.segments[0])
    assert log.examiner.corrupt == {0: (BadBatch(BAD * SIZE, SIZE, BAD, BAD),)}
    assert [each.base_offset for each in headers(read(log, 0))] == [0, 1, 2, 3]
    assert refused(log, BAD).behind == BAD + 1
    for offset in range(BAD + 1, COUNT):
        assert headers(read(log, offset))[0].base_offset == offset
    assert read(log, 2, SIZE * 100) == read(log, 2, SIZE * 2)


@pytest.mark.parametrize("index", [0, COUNT - 1])
def test_the_first_and_the_last_batch_of_a_segment(memory: Store, index: int) -> None:
    log = damaged_log(memory, 30, index=index)
    log.examiner.examine(log.segments[0])
    (bad,) = log.examiner.corrupt[0]
    assert (bad.first_offset, bad.last_offset) == (index, index)
    assert refused(log, index).behind == index + 1
    assert headers(read(log, index + 1))[0].base_offset == index + 1


@pytest.mark.parametrize("flipped", [0x80, 0x40, 0xFF])
def test_a_length_that_leads_nowhere_is_neither_followed_nor_passed_over(memory: Store, flipped: int) -> None:
    log = damaged_log(memory, 8, index=1)
    for offset in (2, 9):
        if log.segments[0].indexes()[0].lookup(offset) == 0:
            assert refused(log, offset).behind is None
    log.reader.warm(2)
    assert log.examiner.corrupt == {0: (BadBatch(SIZE, SIZE, 1, 1),)}
    assert refused(log, 1).behind == 2
    assert headers(read(log, 2))[0].base_offset == 2


@pytest.mark.parametrize("byte", [7, 26])
def test_a_last_batch_that_claims_to_be_an_earlier_one_is_no_end(memory: Store, byte: int) -> None:
    """A reader that waits there would wait for good."""
    log = create(memory)
    fill(log, COUNT - 1)
    append(log, batch(4))
    rewrite(memory, name(0, ".log"), lambda data: flip_last(data, byte))
    log.state.recent_batches.clear()
    offset = log.log_end_offset - 1
    assert refused(log, offset).behind is None
    log.reader.warm(offset)
    assert refused(log, offset).behind == log.log_end_offset


def flip_last(data: bytes, byte: int) -> bytes:
    flipped = bytearray(data)
    flipped[(COUNT - 1) * SIZE + byte] = 0
    return bytes(flipped)


def test_damage_is_told_once(memory: Store, caplog: pytest.LogCaptureFixture) -> None:
    log = damaged_log(memory, 40)
    with caplog.at_level(logging.ERROR):
        log.examiner.examine(log.segments[0])
        log.examiner.examine(log.segments[0])
    (message,) = caplog.messages
    assert f"{name(0, '.log')} is damaged: bytes {BAD * SIZE} to {(BAD + 1) * SIZE - 1}, offsets 4 to 4," in message


def test_a_truncated_segment_forgets_what_was_cut_off(memory: Store) -> None:
    log = damaged_log(memory, 40, sealed=False)
    log.examiner.examine(log.segments[0])
    log.trimmer.truncate_to(BAD)
    assert log.examiner.corrupt == {}


@pytest.mark.parametrize("byte", [8, 16, 30, SIZE - 1])
def test_looking_up_a_time_passes_by_what_is_damaged(memory: Store, byte: int) -> None:
    log = damaged_log(memory, byte)
    for index in range(COUNT):
        found = log.reader.offset_for_timestamp(NOW_MS + index)
        assert found is not None
        if index != BAD:
            assert (found.offset, found.timestamp) == (index, NOW_MS + index)
    found = log.reader.offset_for_timestamp(NOW_MS + BAD)
    assert found is not None and found.offset in (BAD, BAD + 1)


def test_the_record_that_is_looked_for_is_in_a_damaged_batch(memory: Store) -> None:
    log = damaged_log(memory, SIZE - 1)
    found = log.reader.offset_for_timestamp(NOW_MS + BAD)
    assert found is not None and found.offset == BAD + 1
    assert list(log.examiner.corrupt) == [0]


def test_an_index_that_does_not_lead_to_batches_is_built_again(memory: Store) -> None:
    log = damaged_log(memory, 40)
    damage(memory, BAD, 40)
    segment = log.segments[0]
    sound = memory.files.read(segment.files.path(".index"))
    rewrite(memory, name(0, ".index"), lambda data: data[:7] + bytes([data[7] ^ 4]) + data[8:])
    segment.unload()
    first = segment.indexes()[0].relative_offsets[0]
    assert refused(log, first).behind is None
    log.reader.warm(first)
    assert headers(read(log, first))[0].base_offset == first
    assert log.examiner.corrupt == {}
    assert memory.files.read(segment.files.path(".index")) != sound  # with another interval, but right
    assert [headers(read(log, offset))[0].base_offset for offset in range(COUNT)] == list(range(COUNT))


def test_a_bad_batch_does_not_keep_a_bad_index_from_being_built_again(memory: Store) -> None:
    bad = BAD + 2
    log = damaged_log(memory, 40, index=bad)
    segment = log.segments[0]
    rewrite(memory, name(0, ".index"), lambda data: data[:7] + bytes([data[7] ^ 4]) + data[8:])
    segment.unload()
    first = segment.indexes()[0].relative_offsets[0]
    assert first < bad and refused(log, first).behind is None
    log.reader.warm(first)
    assert log.examiner.corrupt == {0: (BadBatch(bad * SIZE, SIZE, bad, bad),)}
    for offset in [each for each in range(COUNT) if each != bad]:
        assert headers(read(log, offset))[0].base_offset == offset
    assert refused(log, bad).behind == bad + 1


@pytest.mark.parametrize("wrong_bytes", [2 * SIZE, 1 << 20])
def test_an_index_that_leads_too_far_takes_no_batches_away(memory: Store, wrong_bytes: int) -> None:
    log = damaged_log(memory, 40)
    damage(memory, BAD, 40)
    segment = log.segments[0]
    offset_index = segment.indexes()[0]
    first, position = offset_index.relative_offsets[0], offset_index.positions[0] + wrong_bytes
    rewrite(memory, name(0, ".index"), lambda data: data[:4] + position.to_bytes(4, "big") + data[8:])
    segment.unload()
    assert refused(log, first).behind is None
    log.reader.warm(first)
    assert log.examiner.corrupt == {}
    assert [headers(read(log, offset))[0].base_offset for offset in range(COUNT)] == list(range(COUNT))


@pytest.mark.parametrize("wrong_bytes", [2 * SIZE, 1 << 20])
def test_nor_from_a_search_by_time(memory: Store, wrong_bytes: int) -> None:
    log = damaged_log(memory, 40)
    damage(memory, BAD, 40)
    offset_index = log.segments[0].indexes()[0]
    first = offset_index.relative_offsets[0]
    offset_index.positions[0] += wrong_bytes
    for offset in (first, first + 1):
        found = log.reader.offset_for_timestamp(NOW_MS + offset)
        assert found is not None and found.offset == offset


@pytest.mark.parametrize("wrong_bytes", [2 * SIZE, 5, 1 << 20])
def test_the_indexes_of_the_active_segment_are_built_again_too(memory: Store, wrong_bytes: int) -> None:
    """A clean start believes what its file says."""
    log = damaged_log(memory, 40, sealed=False)
    damage(memory, BAD, 40)
    offset_index = log.segments.active.indexes()[0]
    first = offset_index.relative_offsets[0]
    offset_index.positions[0] += wrong_bytes
    assert refused(log, first).behind is None
    log.reader.warm(first)
    assert log.examiner.corrupt == {} and log.segments.active.indexes_changed
    append(log, batch(timestamp=NOW_MS + COUNT))
    log.state.recent_batches.clear()
    assert [headers(read(log, offset))[0].base_offset for offset in range(COUNT + 1)] == list(range(COUNT + 1))
    roll(log)
    assert log.segments[0].indexes()[1].last() == (NOW_MS + COUNT, COUNT)


@pytest.mark.parametrize("byte", [0, 1, 3])
def test_indexes_that_are_lost_are_built_around_what_has_no_room_in_them(memory: Store, byte: int) -> None:
    log = create(memory, index_interval_bytes=SIZE)
    fill(log, 3)
    append(log, batch(size_bytes=5000))
    fill(log, COUNT)
    roll(log)
    append(log, batch())
    size_bytes = log.segments[0].size_bytes
    damage(memory, 2, byte)
    rewrite(memory, name(0, ".index"), lambda _: bytes(7) + b"\x01" + size_bytes.to_bytes(8, "big"))
    log.segments[0].unload()
    log.state.recent_batches.clear()
    assert headers(read(log, 5))[0].base_offset == 5
    log.examiner.examine(log.segments[0])
    assert refused(log, 2).behind == 3


class _Page:
    """A file of which only the first bytes are in memory."""

    def __init__(self, data: bytes, resident_bytes: int) -> None:
        self._data = data
        self._resident_bytes = resident_bytes

    def pread(self, size_bytes: int, position: int) -> bytes:
        return self._data[position : position + size_bytes]

    def pread_nowait(self, size_bytes: int, position: int) -> bytes | None:
        end = min(position + size_bytes, self._resident_bytes)
        return self._data[position:end] if position < end else None


def test_a_header_that_goes_on_in_a_page_that_is_not_in_memory_is_cold_not_absent() -> None:
    data = batch(base_offset=0) + batch(base_offset=1)
    file = _Page(data, SIZE + 5)
    with pytest.raises(ColdDataError):
        find_batch(file, 1, 0, len(data), may_block=False)  # type: ignore[arg-type]
    found = find_batch(file, 1, 0, len(data), may_block=True)  # type: ignore[arg-type]
    assert found is not None and found.position == SIZE


def test_a_segment_that_is_gone_is_not_examined(memory: Store) -> None:
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
