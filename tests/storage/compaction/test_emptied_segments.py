"""Reading segments that compaction has emptied: a batch without records keeps their offsets."""

from __future__ import annotations

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.corruption import BadBatch, CorruptDataError
from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.storage.segment.region_search import MOST_PASSED
from kafkacompat.wire.record_batch import HEADER_SIZE
from tests.storage.compaction.support import COMPACTED, append_pairs, compact_log
from tests.storage.support import Store, create_log, read_headers, read_log, reopen_log, roll_log

EMPTIED = 15
"""More segments than the responses without a message that librdkafka accepts."""

SEGMENT_BYTES = 150
LARGE = "x" * 60
"""A value that leaves no room for another in its segment, so that no segments are grouped."""

RECORD_OVERHEAD_BYTES = 7
"""Bytes of a short record besides key and value."""


def emptied_log(store: Store, segments: int = EMPTIED, *, producers: int = 0) -> Log:
    """Create a log of emptied segments, and a segment with two records.

    Each emptied segment has one offset, or one for each of its producers.
    """
    log = create_log(store, segment_bytes=SEGMENT_BYTES, **COMPACTED)
    for segment in range(segments):
        for number in range(producers):
            append_pairs(log, ("a", "old"), producer_id=segment * producers + number, producer_epoch=0, base_sequence=0)
        if not producers:
            append_pairs(log, ("a", LARGE))
        roll_log(log)
    append_pairs(log, ("a", "last"), ("b", "last"))
    roll_log(log)
    compact_log(store, log)
    assert [item.size_bytes for item in log.segments][:segments] == [HEADER_SIZE * max(producers, 1)] * segments
    return log


def fetch_all(log: Log, offset: int = 0, max_bytes: int = 1 << 20) -> list[list[tuple[int, int]]]:
    """Return (last offset, record count) of each batch of each fetch, up to the log's end."""
    fetches = []
    while offset < log.log_end_offset:
        answer = read_headers(read_log(log, offset, max_bytes))
        fetches.append([(header.last_offset, header.record_count) for header in answer])
        offset = answer[-1].last_offset + 1
    return fetches


@pytest.mark.parametrize("max_bytes", [1, 1 << 20])
@pytest.mark.parametrize("offset", [0, 1, EMPTIED - 1])
def test_fetches_skip_emptied_segments(memory: Store, offset: int, max_bytes: int) -> None:
    assert fetch_all(emptied_log(memory), offset, max_bytes) == [[(EMPTIED + 1, 2)]]


def test_a_fetch_skips_segments_that_keep_batches_for_their_producers(memory: Store) -> None:
    assert fetch_all(emptied_log(memory, producers=2)) == [[(2 * EMPTIED + 1, 2)]]


@pytest.mark.parametrize("size_bytes", [2 * HEADER_SIZE, 2 * HEADER_SIZE + 1])
def test_records_after_an_empty_batch_are_not_skipped(store: Store, size_bytes: int) -> None:
    """At any fetch size, and even if the batch is as large as two empty ones."""
    log = create_log(store, segment_bytes=200, **COMPACTED)
    append_pairs(log, ("a", "old"), producer_id=7, producer_epoch=0, base_sequence=0)
    append_pairs(log, ("b", "x" * (size_bytes - HEADER_SIZE - len("b") - RECORD_OVERHEAD_BYTES)))
    roll_log(log)
    append_pairs(log, ("a", LARGE))
    roll_log(log)
    compact_log(store, log)
    assert [segment.size_bytes for segment in log.segments][:1] == [HEADER_SIZE + size_bytes]
    assert fetch_all(log, max_bytes=1) == [[(0, 0)], [(1, 1)], [(2, 1)]]
    assert fetch_all(log) == [[(0, 0), (1, 1)], [(2, 1)]]


def test_records_after_very_many_empty_batches_are_not_skipped(memory: Store) -> None:
    count = 4096 // HEADER_SIZE + 5
    log = create_log(memory, segment_bytes=100 * count, **COMPACTED)
    for number in range(count):
        append_pairs(log, ("a", "old"), producer_id=number, producer_epoch=0, base_sequence=0)
    append_pairs(log, ("b", "x" * (HEADER_SIZE - len("b") - RECORD_OVERHEAD_BYTES)))
    roll_log(log)
    append_pairs(log, ("a", "x" * 50 * count))
    roll_log(log)
    compact_log(memory, log)
    assert [segment.size_bytes for segment in log.segments][:1] == [HEADER_SIZE * (count + 2)]
    assert fetch_all(log)[0][-1] == (count, 1)


def test_an_empty_batch_at_the_end_of_a_log_is_read(memory: Store) -> None:
    log = create_log(memory, segment_bytes=SEGMENT_BYTES)
    for _ in range(3):
        append_pairs(log, (None, LARGE))
        roll_log(log)
    log.config = LogConfig(segment_bytes=SEGMENT_BYTES, **COMPACTED)
    compact_log(memory, log)
    assert [segment.size_bytes for segment in log.segments] == [HEADER_SIZE] * 3 + [0]
    assert fetch_all(log) == [[(2, 0)]]


def test_emptied_segments_are_read_up_to_the_upper_bound(memory: Store) -> None:
    log = emptied_log(memory)
    upper = log.end_position()._replace(offset=3, segment_base_offset=3, position=0)
    assert [header.last_offset for header in read_headers(read_log(log, 0, upper=upper))] == [2]


def test_a_read_skips_a_bounded_number_of_segments(memory: Store) -> None:
    """A read takes no longer, however many there are."""
    log = emptied_log(memory, MOST_PASSED + 5)
    assert fetch_all(log) == [[(MOST_PASSED - 1, 0)], [(MOST_PASSED + 6, 2)]]


def test_damage_after_empty_batches_is_reported_at_its_offset(memory: Store) -> None:
    log = emptied_log(memory)
    log.segments[3].remember_corrupt([BadBatch(0, HEADER_SIZE, 3, 3)])
    assert [header.last_offset for header in read_headers(read_log(log, 0))] == [2]
    with pytest.raises(CorruptDataError):
        read_log(log, 3)
    assert fetch_all(log, 4) == [[(EMPTIED + 1, 2)]]


def test_damage_in_emptied_segments_is_not_skipped(memory: Store) -> None:
    log = emptied_log(memory, producers=2)
    log.segments[1].remember_corrupt([BadBatch(HEADER_SIZE, HEADER_SIZE, 3, 3)])
    assert [header.last_offset for header in read_headers(read_log(log, 0))] == [2]
    with pytest.raises(CorruptDataError):
        read_log(log, 3)


def test_cold_data_ends_the_skipping(memory: Store) -> None:
    emptied_log(memory).close()
    log = reopen_log(memory, clean=True, segment_bytes=SEGMENT_BYTES, **COMPACTED)
    with pytest.raises(ColdDataError):
        log.read(0, 1000, may_block=False)
    log.reader.warm(0)
    assert [header.record_count for header in read_headers(read_log(log, 0, may_block=False))] == [2]
    log.segments[3].unload()
    assert [header.last_offset for header in read_headers(read_log(log, 0, may_block=False))] == [2]
