"""Truncating a follower's log in every place, and starting it over: the log equals one without the later batches."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.memory_files import MemoryFiles
from tests.storage.compaction.support import COMPACTED, append_pairs, roll_and_compact
from tests.storage.log.followers import append_fetched, copy_all, list_aborted, stored_bytes
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    append_marker,
    create_log,
    fill_log,
    list_offsets,
    make_batch,
    name_file,
    read_headers,
    read_log,
    reopen_log,
    rewrite_file,
    roll_log,
)

SMALL: dict[str, Any] = {"segment_bytes": 300, "index_interval_bytes": 0}


def append_transactional(log: Log, producer_id: int, sequence: int) -> int:
    data = make_batch(producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
    return append_batch(log, data, from_client=False).base_offset


def append_abort(log: Log, producer_id: int) -> int:
    return append_marker(log, Marker(producer_id, 0, 0, is_commit=False, transaction_version=0)).base_offset


def test_every_place_of_a_log_with_transactions(memory: Store) -> None:
    """Each truncation leaves the contents of a log that ended there."""
    for target in range(13):
        store = Store(MemoryFiles(), "/logs")
        store.files.make_directory("/logs")
        log = create_log(store, **SMALL)
        for round_number in range(3):  # four offsets a round
            append_transactional(log, 1, round_number)
            append_transactional(log, 2, round_number)
            append_abort(log, 1)
            fill_log(log, 1)
        whole = stored_bytes(log)
        log.trimmer.truncate_to(target, high_watermark=0)
        never = create_log(memory_store_at(target), **SMALL)
        append_fetched(never, cut_batches(whole, target))
        assert list_aborted(log) == list_aborted(never), target
        assert log.producer_state.producers.packed.keys() == never.producer_state.producers.packed.keys()
        firsts = [candidate.producer_state.open.first for candidate in (log, never)]
        assert [first and first.offset for first in firsts] == [firsts[0] and firsts[0].offset] * 2
        assert log.leader_epochs.entries == never.leader_epochs.entries
        assert log.log_end_offset == target
        append_abort(log, 2)
        append_abort(never, 2)
        assert list_aborted(log) == list_aborted(never)
        log.close()
        assert list_aborted(reopen_log(store, clean=True, **SMALL)) == list_aborted(never)


def memory_store_at(number: int) -> Store:
    files = MemoryFiles()
    files.make_directory(f"/{number}")
    return Store(files, f"/{number}")


def cut_batches(data: bytes, offset: int) -> bytes:
    """The batches before an offset."""
    return data[: sum(header.size_bytes for header in read_headers(data) if header.last_offset < offset)]


def test_a_place_between_batches_that_compaction_left(memory: Store) -> None:
    """The offset is kept, so that it is not assigned again; the leader may have batches from there on."""
    config = {**COMPACTED, "segment_bytes": 10_000}
    leader = create_log(memory, **config)
    for _ in range(8):
        append_pairs(leader, ("same", "value"))
    append_pairs(leader, ("other", "value"))
    roll_and_compact(memory, leader)
    follower = create_log(memory_store_at(1), **config)
    copy_all(leader, follower, [1])
    assert [header.base_offset for header in read_headers(stored_bytes(follower))] == [7, 8]
    follower.trimmer.truncate_to(4)
    assert (follower.log_end_offset, follower.segments.active.size_bytes) == (4, 0)
    copy_all(leader, follower, [1])
    assert stored_bytes(follower) == stored_bytes(leader)


def test_the_beginning_of_a_segment(store: Store) -> None:
    log = create_log(store, **SMALL)
    fill_log(log, 10)
    border = log.segments[1].base_offset
    log.trimmer.truncate_to(border)
    assert (log.log_end_offset, log.segments.active.base_offset, log.segments.active.size_bytes) == (border, border, 0)
    fill_log(log, 3)
    assert list_offsets(log) == list(range(border + 3))
    log.close()
    again = reopen_log(store, clean=True, **SMALL)
    assert list_offsets(again) == list(range(border + 3))
    again.close()


@pytest.mark.parametrize("target", [3, 5, 6, 7])
def test_a_place_around_the_log_start_offset(memory: Store, target: int) -> None:
    """The log begins there, and nothing that was deleted comes back."""
    log = create_log(memory)
    for _ in range(3):
        append_batch(log, make_batch(5))
    log.trimmer.advance_log_start_offset(7)
    log.trimmer.truncate_to(target)
    end = min(target, 7) if target != 3 else 3
    assert (log.log_start_offset, log.log_end_offset, read_log(log, end)) == (end, end, b"")
    assert log.recovery_point <= end
    assert append_batch(log, make_batch()).base_offset == end


def test_the_recovery_point_and_the_cleaner_offset_are_not_after_the_end(memory: Store) -> None:
    log = create_log(memory, **SMALL)
    fill_log(log, 10)
    log.flush()
    log.cleaner_offset = 8
    log.trimmer.truncate_to(5)
    assert (log.recovery_point, log.cleaner_offset) == (5, 5)
    fill_log(log, 1)
    assert log.flush() == 6
    log.trimmer.start_over_at(2)
    assert (log.recovery_point, log.cleaner_offset, log.log_start_offset, log.log_end_offset) == (2, 2, 2, 2)
    assert (log.leader_epochs.entries, len(log.producer_state)) == ([], 0)
    log.trimmer.start_over_at(90)
    assert (log.recovery_point, log.log_start_offset, log.log_end_offset) == (90, 90, 90)


def test_a_search_by_time_finds_nothing_that_is_gone(memory: Store) -> None:
    log = create_log(memory, **SMALL)
    fill_log(log, 20)
    append_batch(log, make_batch(timestamp=NOW_MS + 1000))
    roll_log(log)
    fill_log(log, 3)
    log.trimmer.truncate_to(20)
    assert log.reader.offset_for_timestamp(NOW_MS + 500) is None
    assert log.reader.find_max_timestamp() == (19, NOW_MS + 19, 0)
    append_batch(log, make_batch(timestamp=NOW_MS + 600))
    assert log.reader.offset_for_timestamp(NOW_MS + 500) == (20, NOW_MS + 600, 0)


@pytest.mark.parametrize("sealed", [True, False])
def test_an_unreadable_transaction_index_is_rebuilt_first(memory: Store, sealed: bool) -> None:
    log = create_log(memory)
    for number in range(3):
        append_transactional(log, 1, number)
        append_abort(log, 1)
    expected = list_aborted(log)[:2]
    roll_log(log)
    fill_log(log, 2)
    if sealed:
        log.close()
        rewrite_file(memory, name_file(0, ".txnindex"), lambda data: data[:-1])
        log = reopen_log(memory, clean=True)
    log.trimmer.truncate_to(4)
    assert (log.log_end_offset, list_aborted(log)) == (4, expected)


def test_damage_of_unknown_extent_is_examined_first(memory: Store) -> None:
    """The lengths of batches no longer lead to the place."""
    log = create_log(memory, index_interval_bytes=1 << 20)
    fill_log(log, 10)
    roll_log(log)
    fill_log(log, 5)
    log.close()
    size = len(make_batch())
    rewrite_file(memory, name_file(0, ".log"), lambda data: data[: 2 * size + 8] + b"\x7f" * 4 + data[2 * size + 12 :])
    log = reopen_log(memory, clean=True)
    log.trimmer.truncate_to(6)
    assert log.log_end_offset == 6
    assert append_batch(log, make_batch()).base_offset == 6
    assert [header.base_offset for header in read_headers(read_log(log, 3))] == [3, 4, 5, 6]


def test_an_unreadable_segment_takes_the_log_offline(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafkacompat.storage.segment.corruption import CorruptDataError
    from kafkacompat.storage.segment.segment import Segment

    log = create_log(memory)
    fill_log(log, 10)

    def damaged(*_: Any, **__: Any) -> None:
        raise CorruptDataError("damaged", None)

    monkeypatch.setattr(Segment, "find_batch", damaged)
    with pytest.raises(KafkaError) as refused:
        log.trimmer.truncate_to(5)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.offline, log.log_end_offset) == (True, 10)


# --- positions ---


def test_the_place_of_every_offset(memory: Store) -> None:
    log = create_log(memory, segment_bytes=500, index_interval_bytes=0)
    for _ in range(20):
        append_batch(log, make_batch(2))
    size = len(make_batch(2))
    for offset in range(41):
        place = log.reader.find_position(offset)
        segment = log.segments[log.segments.find_slot(offset)]
        assert place.offset == offset - offset % 2
        assert (place.segment_base_offset, place.position) == (
            segment.base_offset,
            (place.offset - segment.base_offset) // 2 * size,
        )
    assert log.reader.find_position(99) == log.end_position()
    log.trimmer.advance_log_start_offset(5)
    assert log.reader.find_position(3).offset == log.reader.find_position(5).offset == 5


def test_the_place_in_a_closed_segment_waits_for_the_disk(memory: Store) -> None:
    log = create_log(memory, **SMALL)
    fill_log(log, 10)
    log.segments[0].unload()
    with pytest.raises(ColdDataError):
        log.reader.find_position(1, may_block=False)
    assert log.reader.find_position(1).offset == 1
