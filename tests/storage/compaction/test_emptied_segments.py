"""Reading what compaction leaves of segments all whose records are gone: a batch that only keeps their offsets."""

from __future__ import annotations

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.corruption import BadBatch, CorruptDataError
from kafkacompat.storage.segment.lookup import ColdDataError
from kafkacompat.storage.segment.region_search import MOST_PASSED
from kafkacompat.wire.record_batch import HEADER_SIZE
from tests.storage.compaction.support import COMPACTED, compact_log, put
from tests.storage.support import Store, create, headers, read, reopen, roll

EMPTIED = 15
"""More segments than librdkafka takes answers without a message."""

SEGMENT_BYTES = 150
LARGE = "x" * 60
"""A value that leaves no room in its segment for another, so that none are joined."""

RECORD_OVERHEAD_BYTES = 7
"""Of a record's bytes those that are neither key nor value, where all are few."""


def emptied_log(store: Store, segments: int = EMPTIED, *, producers: int = 0) -> Log:
    """So many segments of one offset, or one a producer, whose records are all gone, and one whose two stay."""
    log = create(store, segment_bytes=SEGMENT_BYTES, **COMPACTED)
    for segment in range(segments):
        for number in range(producers):
            put(log, ("a", "old"), producer_id=segment * producers + number, producer_epoch=0, base_sequence=0)
        if not producers:
            put(log, ("a", LARGE))
        roll(log)
    put(log, ("a", "last"), ("b", "last"))
    roll(log)
    compact_log(store, log)
    assert [each.size_bytes for each in log.segments][:segments] == [HEADER_SIZE * max(producers, 1)] * segments
    return log


def fetches(log: Log, offset: int = 0, max_bytes: int = 1 << 20) -> list[list[tuple[int, int]]]:
    """The last offset and the number of records of each batch that each fetch answers, up to the log's end."""
    found = []
    while offset < log.log_end_offset:
        answer = headers(read(log, offset, max_bytes))
        found.append([(each.last_offset, each.record_count) for each in answer])
        offset = answer[-1].last_offset + 1
    return found


@pytest.mark.parametrize("max_bytes", [1, 1 << 20])
@pytest.mark.parametrize("offset", [0, 1, EMPTIED - 1])
def test_no_fetch_has_to_be_made_for_them(memory: Store, offset: int, max_bytes: int) -> None:
    assert fetches(emptied_log(memory), offset, max_bytes) == [[(EMPTIED + 1, 2)]]


def test_nor_for_those_that_keep_batches_for_their_producers(memory: Store) -> None:
    assert fetches(emptied_log(memory, producers=2)) == [[(2 * EMPTIED + 1, 2)]]


@pytest.mark.parametrize("size_bytes", [2 * HEADER_SIZE, 2 * HEADER_SIZE + 1])
def test_records_behind_an_empty_batch_are_not_passed_by(store: Store, size_bytes: int) -> None:
    """Whatever a fetch has room for, and however much it looks as if there were two empty ones."""
    log = create(store, segment_bytes=200, **COMPACTED)
    put(log, ("a", "old"), producer_id=7, producer_epoch=0, base_sequence=0)
    put(log, ("b", "x" * (size_bytes - HEADER_SIZE - len("b") - RECORD_OVERHEAD_BYTES)))
    roll(log)
    put(log, ("a", LARGE))
    roll(log)
    compact_log(store, log)
    assert [each.size_bytes for each in log.segments][:1] == [HEADER_SIZE + size_bytes]
    assert fetches(log, max_bytes=1) == [[(0, 0)], [(1, 1)], [(2, 1)]]
    assert fetches(log) == [[(0, 0), (1, 1)], [(2, 1)]]


def test_nor_are_records_behind_more_empty_batches_than_are_looked_at(memory: Store) -> None:
    count = 4096 // HEADER_SIZE + 5
    log = create(memory, segment_bytes=100 * count, **COMPACTED)
    for number in range(count):
        put(log, ("a", "old"), producer_id=number, producer_epoch=0, base_sequence=0)
    put(log, ("b", "x" * (HEADER_SIZE - len("b") - RECORD_OVERHEAD_BYTES)))
    roll(log)
    put(log, ("a", "x" * 50 * count))
    roll(log)
    compact_log(memory, log)
    assert [each.size_bytes for each in log.segments][:1] == [HEADER_SIZE * (count + 2)]
    assert fetches(log)[0][-1] == (count, 1)


def test_what_ends_a_log_is_read_though_it_is_empty(memory: Store) -> None:
    log = create(memory, segment_bytes=SEGMENT_BYTES)
    for _ in range(3):
        put(log, (None, LARGE))
        roll(log)
    log.config = LogConfig(segment_bytes=SEGMENT_BYTES, **COMPACTED)
    compact_log(memory, log)
    assert [each.size_bytes for each in log.segments] == [HEADER_SIZE] * 3 + [0]
    assert fetches(log) == [[(2, 0)]]


def test_up_to_the_upper_bound_they_are_read(memory: Store) -> None:
    log = emptied_log(memory)
    upper = log.end_position()._replace(offset=3, segment_base_offset=3, position=0)
    assert [each.last_offset for each in headers(read(log, 0, upper=upper))] == [2]


def test_so_many_at_most_are_passed_by_at_once(memory: Store) -> None:
    """A read takes no longer, whatever there is to be passed by."""
    log = emptied_log(memory, MOST_PASSED + 5)
    assert fetches(log) == [[(MOST_PASSED - 1, 0)], [(MOST_PASSED + 6, 2)]]


def test_damage_behind_them_is_told_of_where_it_is(memory: Store) -> None:
    log = emptied_log(memory)
    log.segments[3].remember_corrupt([BadBatch(0, HEADER_SIZE, 3, 3)])
    assert [each.last_offset for each in headers(read(log, 0))] == [2]
    with pytest.raises(CorruptDataError):
        read(log, 3)
    assert fetches(log, 4) == [[(EMPTIED + 1, 2)]]


def test_damage_in_them_is_not_passed_by(memory: Store) -> None:
    log = emptied_log(memory, producers=2)
    log.segments[1].remember_corrupt([BadBatch(HEADER_SIZE, HEADER_SIZE, 3, 3)])
    assert [each.last_offset for each in headers(read(log, 0))] == [2]
    with pytest.raises(CorruptDataError):
        read(log, 3)


def test_what_is_not_in_memory_ends_the_passing_by(memory: Store) -> None:
    emptied_log(memory).close()
    log = reopen(memory, clean=True, segment_bytes=SEGMENT_BYTES, **COMPACTED)
    with pytest.raises(ColdDataError):
        log.read(0, 1000, may_block=False)
    log.reader.warm(0)
    assert [each.record_count for each in headers(read(log, 0, may_block=False))] == [2]
    log.segments[3].unload()
    assert [each.last_offset for each in headers(read(log, 0, may_block=False))] == [2]
