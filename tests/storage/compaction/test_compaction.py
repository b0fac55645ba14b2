"""Compaction keeps the last record of each key, its offset, and the order."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.storage.compaction import CorruptBatchError
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LONG_MAX, LogConfig
from kafkacompat.storage.producers.producer import PRODUCER_ENTRY
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.record_batch import NewRecord, build_batch, crc_matches, read_header
from kafkacompat.wire.record_slices import TURN_RECORDS
from tests.storage.compaction.support import (
    COMPACTED,
    aborted_of,
    append_pairs,
    compact_log,
    end_transaction,
    list_batches,
    list_records,
    roll_and_compact,
)
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    name_file,
    read_contents,
    read_log,
    reopen_log,
    rewrite_file,
    roll_log,
)

DAY_MS = 86_400_000


def test_the_last_record_of_each_key_keeps_its_offset(store: Store) -> None:
    log = create_log(store, **COMPACTED)
    append_pairs(log, ("a", "1"), ("b", "1"), ("a", "2"))
    append_pairs(log, ("c", "1"))
    append_pairs(log, ("b", "2"), ("d", "1"))
    result = roll_and_compact(store, log)
    assert list_records(log) == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2"), (5, "d", "1")]
    assert result is not None
    assert (result.end_offset, result.records_read, result.records_kept, result.keys) == (6, 6, 4, 4)
    assert (log.log_start_offset, log.log_end_offset) == (0, 6)


def test_a_compaction_ends_its_turn_every_few_records(store: Store) -> None:
    log = create_log(store, **COMPACTED)
    append_pairs(log, *((str(number), "v") for number in range(3 * TURN_RECORDS)))
    turns: list[None] = []
    roll_and_compact(store, log, end_turn=lambda: turns.append(None))
    assert len(turns) == 2 * 3  # for the keys, and for the records


def test_the_active_segment_is_not_looked_at(store: Store) -> None:
    log = create_log(store, **COMPACTED)
    append_pairs(log, ("a", "1"))
    roll_log(log)
    append_pairs(log, ("a", "2"))
    compact_log(store, log)
    assert list_records(log) == [(0, "a", "1"), (1, "a", "2")]


def test_old_records_give_way_to_new_ones_in_later_compactions(store: Store) -> None:
    log = create_log(store, **COMPACTED)
    for round_ in range(4):
        append_pairs(log, ("a", str(round_)), ("b", str(round_)), (f"only {round_}", "x"))
        roll_and_compact(store, log)
    assert list_records(log) == [
        (2, "only 0", "x"),
        (5, "only 1", "x"),
        (8, "only 2", "x"),
        (9, "a", "3"),
        (10, "b", "3"),
        (11, "only 3", "x"),
    ]


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_keep_their_codec_their_header_and_their_checksum(store: Store, codec: Codec) -> None:
    log = create_log(store, **COMPACTED)
    append_pairs(log, ("a", "1"), ("b", "1" * 500), codec=codec, producer_id=7, producer_epoch=2, base_sequence=0)
    append_pairs(log, ("a", "2"), ("x", "y"), codec=codec, producer_id=7, producer_epoch=2, base_sequence=2)
    before = list_batches(log)
    roll_and_compact(store, log)
    after = list_batches(log)
    first = after[0].header
    assert first == before[0].header._replace(length=first.length, crc=first.crc, record_count=1)
    assert after[0].records == before[0].records[1:]
    assert after[1] == before[1]
    for batch in after:
        assert crc_matches(read_log(log, batch.header.base_offset, 1), batch.header)


def test_the_largest_timestamp_is_that_of_the_remaining_records(store: Store) -> None:
    log = create_log(store, **COMPACTED)
    batch: list[NewRecord] = [(NOW_MS, b"a", b"1", []), (NOW_MS + 9, b"b", b"1", []), (NOW_MS + 5, b"c", b"1", [])]
    append_batch(log, build_batch(batch), now_ms=NOW_MS)
    append_pairs(log, ("b", "2"), now_ms=NOW_MS)
    roll_and_compact(store, log)
    assert [item.header.max_timestamp for item in list_batches(log)] == [NOW_MS + 5, NOW_MS]
    assert [record.timestamp for record in list_batches(log)[0].records] == [NOW_MS, NOW_MS + 5]


def test_log_append_times_stay(store: Store) -> None:
    log = create_log(store, message_timestamp_type="LogAppendTime", **COMPACTED)
    append_pairs(log, ("a", "1"), ("b", None), now_ms=NOW_MS)
    append_pairs(log, ("a", "2"), now_ms=NOW_MS + 1)
    roll_and_compact(store, log)
    assert [batch.records[0].timestamp for batch in list_batches(log)] == [NOW_MS, NOW_MS + 1]


def test_records_without_keys_go(store: Store) -> None:
    log = create_log(store)
    append_pairs(log, (None, "1"), ("a", "1"))
    log.config = LogConfig(**COMPACTED)
    result = roll_and_compact(store, log)
    assert list_records(log) == [(1, "a", "1")]
    assert result is not None
    assert result.keyless == 1


# Tombstones


def test_a_tombstone_stays_until_its_time_has_come_after_the_first_compaction(store: Store) -> None:
    log = create_log(store, delete_retention_ms=1000, **COMPACTED)
    append_pairs(log, ("a", "1"), ("b", "1"))
    append_pairs(log, ("a", None), ("c", "1"))
    roll_and_compact(store, log)
    assert list_records(log) == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
    (_, marked) = list_batches(log)
    assert marked.header.delete_horizon_ms == NOW_MS + 1000
    assert [record.timestamp for record in marked.records] == [NOW_MS, NOW_MS]
    append_pairs(log, ("x", "1"))
    roll_and_compact(store, log, now_ms=NOW_MS + 999)
    assert list_records(log)[1] == (2, "a", None)
    assert list_batches(log)[1] == marked
    append_pairs(log, ("x", "2"))
    roll_and_compact(store, log, now_ms=NOW_MS + 1000)
    assert list_records(log) == [(1, "b", "1"), (3, "c", "1"), (5, "x", "2")]


@pytest.mark.parametrize("codec", list(Codec))
def test_timestamps_survive_the_delete_horizon(store: Store, codec: Codec) -> None:
    log = create_log(store, **COMPACTED)
    append_pairs(log, ("a", None), ("b", "x" * 300), codec=codec)
    (before,) = list_batches(log)
    roll_and_compact(store, log)
    (after,) = list_batches(log)
    assert after.records == before.records
    assert after.header.base_timestamp == NOW_MS + DAY_MS


@pytest.mark.parametrize(
    ("retention_ms", "written_ms"),
    [(LONG_MAX, NOW_MS), (LONG_MAX - NOW_MS, -1), (DAY_MS, NOW_MS - LONG_MAX)],
    ids=["no end of time", "too far from no time", "too far from ancient times"],
)
def test_a_horizon_that_no_number_can_say_leaves_the_tombstone(
    store: Store, retention_ms: int, written_ms: int
) -> None:
    log = create_log(store, delete_retention_ms=retention_ms, **COMPACTED)
    append_pairs(log, ("a", "1"))
    append_batch(log, build_batch([(NOW_MS, b"b", b"1", []), (written_ms, b"a", None, [])]), from_client=True)
    (_, before) = list_batches(log)
    for now_ms in (NOW_MS, NOW_MS + DAY_MS):
        append_pairs(log, ("x", "1"))
        roll_and_compact(store, log, now_ms=now_ms)
        assert list_batches(log)[0] == before


def test_the_largest_horizon_that_can_be_said(store: Store) -> None:
    log = create_log(store, delete_retention_ms=LONG_MAX - NOW_MS - 1, **COMPACTED)
    append_batch(log, build_batch([(-1, b"a", None, [])]), from_client=True)
    roll_and_compact(store, log)
    (marked,) = list_batches(log)
    assert marked.header.delete_horizon_ms == LONG_MAX - 1
    assert [record.timestamp for record in marked.records] == [-1]


def test_a_tombstone_appended_after_a_truncation_deletes(store: Store) -> None:
    log = create_log(store, delete_retention_ms=0, **COMPACTED)
    append_pairs(log, ("a", "old"))
    roll_log(log)
    append_pairs(log, ("b", "1"), ("c", "1"))
    roll_and_compact(store, log)
    log.trimmer.truncate_to(1)
    append_pairs(log, ("a", None))
    for value in "xyz":
        append_pairs(log, ("d", value))
        roll_and_compact(store, log)
    assert list_records(log) == [(4, "d", "z")]


# Producers


def test_the_last_batch_of_each_producer_stays_without_records(store: Store) -> None:
    log = create_log(store, **COMPACTED)
    append_pairs(log, ("a", "1"), ("b", "1"), producer_id=7, producer_epoch=1, base_sequence=0)
    append_pairs(log, ("a", "2"), ("b", "2"), producer_id=7, producer_epoch=1, base_sequence=2)
    append_pairs(log, ("a", "3"), ("b", "3"))
    roll_and_compact(store, log)
    emptied, last = list_batches(log)
    header = emptied.header
    assert emptied.records == []
    assert (header.base_offset, header.last_offset, header.base_sequence) == (2, 3, 2)
    assert (header.producer_id, header.producer_epoch, header.max_timestamp) == (7, 1, NOW_MS)
    assert [record.offset for record in last.records] == [4, 5]
    for snapshot in store.files.list(store.path("t-0")):
        if snapshot.endswith(".snapshot"):
            store.files.remove(store.path("t-0", snapshot))
    again = reopen_log(store, **COMPACTED)
    assert again.producer_state.producers[7].batches[-1].last_sequence == 3
    append_pairs(again, ("c", "1"), producer_id=7, producer_epoch=1, base_sequence=4)


def test_a_job_has_only_producers_whose_last_batch_it_can_meet(memory: Store) -> None:
    log = create_log(memory, **COMPACTED)
    append_pairs(log, ("a", "1"), producer_id=7, producer_epoch=0, base_sequence=0)
    append_pairs(log, ("a", "2"), producer_id=8, producer_epoch=0, base_sequence=0)
    roll_log(log)
    append_pairs(log, ("a", "3"), producer_id=8, producer_epoch=0, base_sequence=1)
    cleanable = log.compaction.find_cleanable(stable_offset=log.log_end_offset, now_ms=NOW_MS)
    assert cleanable is not None
    job = log.compaction.make_cleaning_job(cleanable, now_ms=NOW_MS, map_bytes=1000, load_factor=0.9)
    assert job is not None
    assert [entry[0] for entry in PRODUCER_ENTRY.iter_unpack(job.producers)] == [7]


def test_an_empty_batch_goes_once_its_producer_wrote_again_or_is_forgotten(store: Store) -> None:
    log = create_log(store, **COMPACTED)
    append_pairs(log, ("a", "1"), producer_id=7, producer_epoch=1, base_sequence=0)
    append_pairs(log, ("a", "2"))
    roll_and_compact(store, log)
    assert [batch.header.base_offset for batch in list_batches(log)] == [0, 1]
    log.producer_state.producers.clear()
    append_pairs(log, ("b", "2"))
    roll_and_compact(store, log)
    assert [batch.header.base_offset for batch in list_batches(log)] == [1, 2]


# Transactions


def make_transactional(producer_id: int = 7, base_sequence: int = 0) -> dict[str, Any]:
    return {
        "producer_id": producer_id,
        "producer_epoch": 0,
        "base_sequence": base_sequence,
        "transactional": True,
    }


def test_a_commit_marker_goes_after_its_records_and_its_horizon(store: Store) -> None:
    log = create_log(store, delete_retention_ms=1000, **COMPACTED)
    append_pairs(log, ("a", "1"), **make_transactional())
    end_transaction(log, 7, commit=True)
    append_pairs(log, ("a", "2"), **make_transactional(base_sequence=1))
    end_transaction(log, 7, commit=True)
    roll_and_compact(store, log)
    assert list_records(log) == [(2, "a", "2")]
    # The transaction of the first marker had a batch in this compaction.
    assert [batch.header.base_offset for batch in list_batches(log)] == [1, 2, 3]
    append_pairs(log, ("b", "1"))
    roll_and_compact(store, log)
    assert [batch.header.delete_horizon_ms for batch in list_batches(log)] == [NOW_MS + 1000, None, None, None]
    append_pairs(log, ("c", "1"))
    roll_and_compact(store, log, now_ms=NOW_MS + 1000)
    assert [batch.header.base_offset for batch in list_batches(log)] == [2, 3, 4, 5]


def aborted_log(store: Store) -> Log:
    """Two segments: an aborted transaction across both, a committed one, and records without a transaction."""
    log = create_log(store, delete_retention_ms=1000, **COMPACTED)
    append_pairs(log, ("a", "kept"))
    append_pairs(log, ("a", "aborted"), **make_transactional(7))
    append_pairs(log, ("c", "committed"), **make_transactional(8))
    roll_log(log)
    append_pairs(log, ("b", "aborted"), **make_transactional(7, base_sequence=1))
    end_transaction(log, 8, commit=True)
    end_transaction(log, 7, commit=False)
    append_pairs(log, ("z", "1"))
    roll_log(log)
    log.flush()
    return log


def test_aborted_records_go_and_count_for_no_key(store: Store) -> None:
    log = aborted_log(store)
    assert aborted_of(store) == {"03": [AbortedTransaction(7, 1, 5, 6)]}
    compact_log(store, log)
    assert list_records(log) == [(0, "a", "kept"), (2, "c", "committed"), (6, "z", "1")]
    # Active consumers may still need the entry; the producer's last batch stays anyway.
    assert [batch.header.base_offset for batch in list_batches(log)] == [0, 2, 3, 4, 5, 6]
    assert aborted_of(store) == {"00": [AbortedTransaction(7, 1, 5, 6)]}


def test_an_abort_marker_goes_after_its_records_and_its_horizon(store: Store) -> None:
    log = aborted_log(store)
    log.producer_state.producers.clear()
    compact_log(store, log)
    append_pairs(log, ("y", "1"))
    roll_and_compact(store, log)
    assert {batch.header.base_offset: batch.header.delete_horizon_ms for batch in list_batches(log)} == {
        0: None,
        2: None,
        4: None,
        5: NOW_MS + 1000,
        6: None,
        7: None,
    }
    assert aborted_of(store) == {}
    append_pairs(log, ("x", "1"))
    roll_and_compact(store, log, now_ms=NOW_MS + 1000)
    assert [batch.header.base_offset for batch in list_batches(log)] == [0, 2, 4, 6, 7, 8]


def test_nothing_from_the_first_undecided_transaction_on_is_looked_at(store: Store) -> None:
    log = create_log(store, **COMPACTED)
    append_pairs(log, ("a", "1"))
    append_pairs(log, ("a", "2"))
    roll_log(log)
    append_pairs(log, ("b", "1"))
    append_pairs(log, ("a", "undecided"), **make_transactional())
    append_pairs(log, ("b", "2"))
    roll_log(log)
    result = compact_log(store, log)
    assert result is not None
    assert result.end_offset == 2
    assert [offset for offset, *_ in list_records(log)] == [1, 2, 3, 4]
    assert compact_log(store, log) is None
    end_transaction(log, 7, commit=False)
    log.flush()
    compact_log(store, log)
    assert [offset for offset, *_ in list_records(log)] == [1, 4]


def test_the_index_is_built_again_after_a_crash(store: Store) -> None:
    log = aborted_log(store)
    compact_log(store, log)
    log.release()
    for name_ in store.files.list(store.path("t-0")):
        if name_.endswith((".txnindex", ".snapshot")):
            store.files.remove(store.path("t-0", name_))
    reopen_log(store, **COMPACTED).close()
    # It begins with the first remaining batch.
    assert aborted_of(store) == {"00": [AbortedTransaction(7, 3, 5, 6)]}


def test_a_shorter_log_has_a_shorter_index(store: Store) -> None:
    log = aborted_log(store)
    log.trimmer.truncate_to(6)
    assert aborted_of(store) == {"03": [AbortedTransaction(7, 1, 5, 6)]}
    log.trimmer.truncate_to(5)
    assert aborted_of(store) == {}


# Damaged batches


@pytest.mark.parametrize("position", [5, 10, 16, 17, 30, 65, -1])
def test_a_damaged_batch_stops_a_compaction_without_changes(store: Store, position: int) -> None:
    log = create_log(store, **COMPACTED)
    for value in range(3):
        append_pairs(log, ("a", str(value)))
    roll_log(log)
    rewrite_file(store, name_file(0, ".log"), lambda data: flip_byte(data, 2 * len(data) // 3 + position))
    before = read_contents(store)
    with pytest.raises(CorruptBatchError):
        compact_log(store, log)
    log.compaction.remove_cleaned()
    assert read_contents(store) == before


@pytest.mark.parametrize("lost", [(".timeindex",), (".index", ".timeindex")])
def test_indexes_that_are_built_again_point_at_no_emptied_batch_either(store: Store, lost: tuple[str, ...]) -> None:
    log = create_log(store, index_interval_bytes=0, **COMPACTED)
    for number in range(9):
        sequence = number // 3
        producer = {"producer_id": number % 3, "producer_epoch": 0, "base_sequence": sequence}
        append_pairs(log, ("a", str(number)), now_ms=NOW_MS + 10 * number, **producer)
    append_pairs(log, ("a", "last"), now_ms=NOW_MS)
    roll_and_compact(store, log)
    assert [len(batch.records) for batch in list_batches(log)] == [0, 0, 0, 1]
    assert log.segments[0].max_timestamp == NOW_MS
    log.close()
    before = read_contents(store)
    for suffix in lost:
        store.files.remove(store.path(name_file(0, suffix)))
    again = reopen_log(store, recovery_point=10, index_interval_bytes=0, **COMPACTED)
    assert again.segments[0].max_timestamp == NOW_MS
    again.close()
    assert {name: read_contents(store)[name] for name in before} == before


def flip_byte(data: bytes, position: int) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 0x81
    return bytes(changed)


def test_remaining_records_are_found_by_offset_and_time_after_a_restart(store: Store) -> None:
    log = create_log(store, index_interval_bytes=0, **COMPACTED)
    for value in range(20):
        append_pairs(log, ("ab"[value % 2], str(value)), (f"k{value}", "x" * 50), now_ms=NOW_MS + 1000 * value)
    roll_and_compact(store, log)
    expected = list_batches(log)
    log.close()
    again = reopen_log(store, clean=True, **COMPACTED)
    assert list_batches(again) == expected
    for batch in expected:
        assert read_header(read_log(again, batch.header.base_offset)) == batch.header
    record = again.reader.offset_for_timestamp(NOW_MS + 7000)
    assert record is not None
    assert record.offset == 15
