"""Retention: which segments are deleted, and that reads of them continue."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.segment.segment_files import DELETED_SUFFIX
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.power_failures import Survivors
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    fill_log,
    list_offsets,
    make_batch,
    name_file,
    read_log,
    reopen_log,
    roll_log,
    stored_headers,
)

SIZE = len(make_batch())


def log_of(store: Store, segments: int, **config: Any) -> Log:
    """Create a log with two batches a segment, a second apart; the last segment is active."""
    log = create_log(store, segment_bytes=2 * SIZE, **config)
    for index in range(2 * segments):
        append_batch(log, make_batch(timestamp=NOW_MS + 1000 * index))
    assert len(log.segments) == segments
    return log


def list_expired(log: Log, now_ms: int = NOW_MS, high_watermark: int | None = None) -> list[int]:
    segments = log.trimmer.expired_segments(
        high_watermark=log.log_end_offset if high_watermark is None else high_watermark, now_ms=now_ms
    )
    return [segment.base_offset for segment in segments]


def delete_expired(log: Log, now_ms: int = NOW_MS) -> None:
    segments = log.trimmer.expired_segments(high_watermark=log.log_end_offset, now_ms=now_ms)
    log.trimmer.detach(segments)
    log.trimmer.mark_deleted(segments)
    log.trimmer.delete_segments(segments)


@pytest.mark.parametrize(
    ("retention_bytes", "gone"),
    [(-1, []), (8 * SIZE, []), (7 * SIZE, []), (6 * SIZE, [0]), (3 * SIZE, [0, 2]), (0, [0, 2, 4, 6])],
)
def test_retention_by_size_deletes_whole_segments_only(store: Store, retention_bytes: int, gone: list[int]) -> None:
    log = log_of(store, 4, retention_bytes=retention_bytes, retention_ms=-1)
    assert list_expired(log) == gone
    log.close()


@pytest.mark.parametrize(
    ("age_ms", "gone"), [(1000 + 500, []), (1000 + 501, [0]), (3000 + 501, [0, 2]), (10_000, [0, 2, 4, 6])]
)
def test_time_counts_from_a_segments_latest_record(store: Store, age_ms: int, gone: list[int]) -> None:
    log = log_of(store, 4, retention_ms=500)
    assert list_expired(log, NOW_MS + age_ms) == gone
    log.close()


def test_a_future_timestamp_keeps_later_segments(store: Store) -> None:
    log = create_log(store, segment_bytes=2 * SIZE, retention_ms=500, message_timestamp_after_max_ms=2**60)
    append_batch(log, make_batch(timestamp=NOW_MS * 2))
    fill_log(log, 6)
    assert list_expired(log, NOW_MS + 10**6) == []
    log.close()


def test_without_times_the_last_write_counts(memory: Store) -> None:
    assert isinstance(memory.files, MemoryFiles)
    log = create_log(memory, segment_bytes=2 * SIZE, retention_ms=500)
    for index in range(5):
        memory.files.now_ms = NOW_MS + 1000 * index
        append_batch(log, make_batch(timestamp=-1), now_ms=memory.files.now_ms)
    assert list_expired(log, NOW_MS + 1501) == [0]
    log.close()
    again = reopen_log(memory, clean=True, retention_ms=500)
    assert list_expired(again, NOW_MS + 1500) == []
    assert list_expired(again, NOW_MS + 1501) == [0]
    again.close()


def test_retention_keeps_everything_from_the_high_watermark_on(store: Store) -> None:
    log = log_of(store, 4, retention_bytes=0)
    assert list_expired(log, high_watermark=0) == []
    assert list_expired(log, high_watermark=3) == [0]
    assert list_expired(log, high_watermark=4) == [0, 2]
    assert list_expired(log, high_watermark=7) == [0, 2, 4]
    log.close()


def test_segments_before_the_log_start_are_deleted_under_any_policy(store: Store) -> None:
    log = log_of(store, 4, retention_bytes=0, retention_ms=0, cleanup_policy=frozenset({"compact"}))
    assert list_expired(log) == []
    log.trimmer.advance_log_start_offset(5)
    assert list_expired(log) == [0, 2]
    log.trimmer.advance_log_start_offset(8)
    # The active segment stays, because no other would replace it.
    assert list_expired(log) == [0, 2, 4]
    log.close()


def test_an_empty_active_segment_stays(store: Store) -> None:
    log = log_of(store, 2, retention_bytes=0)
    roll_log(log)
    assert list_expired(log) == [0, 2]
    log.close()


def test_the_active_segment_is_deleted_after_a_roll(store: Store) -> None:
    log = log_of(store, 2, retention_bytes=0)
    segments = log.trimmer.expired_segments(high_watermark=log.log_end_offset, now_ms=NOW_MS)
    with pytest.raises(ValueError, match="oldest segments"):
        log.trimmer.detach(segments)
    roll_log(log)
    log.trimmer.detach(segments)
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    log.trimmer.delete_segments(segments)
    assert append_batch(log, make_batch()).base_offset == 4
    log.close()


def test_only_the_oldest_can_be_detached(store: Store) -> None:
    log = log_of(store, 3)
    with pytest.raises(ValueError, match="oldest segments"):
        log.trimmer.detach([log.segments[1]])
    log.trimmer.detach([])
    assert len(log.segments) == 3
    log.close()


def test_deletion_moves_the_start_and_removes_the_files(store: Store) -> None:
    log = log_of(store, 4, retention_bytes=3 * SIZE)
    delete_expired(log)
    assert log.log_start_offset == 4
    assert log.leader_epochs.entries == [(0, 4)]
    assert [header.base_offset for header in stored_headers(log)] == [4, 5, 6, 7]
    assert min(store.files.list(store.path("t-0"))) == "00000000000000000004.index"
    log.close()
    again = reopen_log(store)
    assert again.log_start_offset == 4
    again.close()


def test_a_reader_keeps_its_region_after_a_deletion(store: Store) -> None:
    log = log_of(store, 4, retention_bytes=0)
    expected = read_log(log, 0)
    region = log.read(0, 1 << 20)
    assert region is not None
    roll_log(log)
    delete_expired(log)
    assert region.pread(0, region.size_bytes) == expected
    region.release()
    log.close()


def test_a_crash_while_deleting_leaves_a_whole_log(memory: Store) -> None:
    """Whatever files the crash leaves, the newer part of the log remains without a gap."""
    log = log_of(memory, 4)
    log.flush()
    doomed = list(log.segments)[:2]
    log.trimmer.detach(doomed)
    doomed[0].files.rename(DELETED_SUFFIX)
    assert isinstance(memory.files, MemoryFiles)
    memory.files.crash(lose_unsynced=False)
    again = reopen_log(memory)
    assert [header.base_offset for header in stored_headers(again)] == [2, 3, 4, 5, 6, 7]
    again.close()


def test_snapshots_go_with_their_segments(store: Store) -> None:
    log = log_of(store, 4, retention_bytes=3 * SIZE)
    delete_expired(log)
    assert [name for name in store.files.list(store.path("t-0")) if name.endswith(".snapshot")] == [
        "00000000000000000004.snapshot",
        "00000000000000000006.snapshot",
    ]
    log.close()


@pytest.mark.parametrize("log_start_offset", [0, 7])
def test_segments_that_are_marked_deleted_leave_no_gap_in_a_power_failure(memory: Store, log_start_offset: int) -> None:
    """In any order in which the file system writes names; or the checkpoint has the log start offset."""
    files = memory.files
    assert isinstance(files, MemoryFiles)
    log = create_log(memory)
    for _ in range(5):
        fill_log(log, 2)
        roll_log(log)
    log.flush()
    log.trimmer.advance_log_start_offset(log_start_offset)
    oldest = list(log.segments)[:3]
    left: list[MemoryFiles] = []

    def fall(_: str) -> None:
        left.extend(files.after(Survivors("any", "all", Random(seed))) for seed in range(20))

    log.trimmer.detach(oldest)
    files.before_change = fall
    log.trimmer.mark_deleted(oldest)
    if log_start_offset:
        # As an earlier release or Apache Kafka might leave it.
        gap = files.after(Survivors("all", "all", Random(0)))
        gap.rename(memory.path(name_file(0, ".log.deleted")), memory.path(name_file(0, ".log")))
        left.append(gap)
    for disk in left:
        again = reopen_log(Store(disk, memory.root), log_start_offset=log_start_offset)
        assert again.log_start_offset in (0, 2, 4, 6, 7)
        assert list_offsets(again)[-1] == 9
        again.close()
