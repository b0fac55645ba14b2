"""Rolling a log, sealing its segments and flushing it."""

from __future__ import annotations

import pytest

from kafkacompat.storage.log.log import Log, RollNeededError
from kafkacompat.storage.log.rolling import must_roll
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    fill_log,
    make_batch,
    name_file,
    read_log,
    reopen_log,
    rewrite_file,
    roll_log,
    stored_headers,
)


def needs_roll(log: Log, size_bytes: int, max_timestamp: int = -1) -> bool:
    return must_roll(log.segments.active, size_bytes, log.log_end_offset, max_timestamp, NOW_MS, log.config)


def test_an_append_that_needs_a_roll_changes_nothing(store: Store) -> None:
    log = create_log(store, segment_bytes=200)
    fill_log(log, 2)
    before = log.end_position()
    assert needs_roll(log, len(make_batch()))
    with pytest.raises(RollNeededError):
        log.append(make_batch(), leader_epoch=9, now_ms=NOW_MS, from_client=True)
    assert log.end_position() == before
    assert log.leader_epochs.latest == 0
    log.close()


@pytest.mark.parametrize(("age_ms", "rolls"), [(1000, False), (1001, True)])
def test_segments_roll_by_the_time_of_their_batches(store: Store, age_ms: int, rolls: bool) -> None:
    log = create_log(store, segment_ms=1000)
    append_batch(log, make_batch(timestamp=NOW_MS))
    append_batch(log, make_batch(timestamp=NOW_MS + age_ms), now_ms=NOW_MS)
    assert len(log.segments) == 1 + rolls
    log.close()


@pytest.mark.parametrize(("age_ms", "rolls"), [(1000, False), (1001, True)])
def test_segments_without_times_roll_by_the_clock(store: Store, age_ms: int, rolls: bool) -> None:
    log = create_log(store, segment_ms=1000)
    append_batch(log, make_batch(timestamp=-1), now_ms=NOW_MS)
    append_batch(log, make_batch(timestamp=-1), now_ms=NOW_MS + age_ms)
    assert len(log.segments) == 1 + rolls
    log.close()


def test_jitter_rolls_earlier_by_at_most_its_limit(store: Store) -> None:
    log = create_log(store, segment_ms=1000, segment_jitter_ms=500)
    append_batch(log, make_batch(timestamp=NOW_MS))
    ages = [age for age in range(0, 1100) if needs_roll(log, 100, NOW_MS + age)]
    assert 500 < ages[0] <= 1001
    log.close()


def test_a_full_index_rolls(store: Store) -> None:
    log = create_log(store, segment_index_bytes=40, index_interval_bytes=0)
    fill_log(log, 20)
    # Five entries fit the offset index, three the time index, which keeps one of them free.
    assert [segment.base_offset for segment in log.segments][:3] == [0, 3, 6]
    log.close()


def test_offsets_that_do_not_fit_the_index_roll(store: Store) -> None:
    log = create_log(store)
    append_batch(log, make_batch())
    log.segments.active.base_offset -= 2**31 - 2
    assert not needs_roll(log, 100)
    log.state.log_end_offset += 1
    assert needs_roll(log, 100)
    log.release()


def test_a_segment_can_only_follow_the_logs_end(store: Store) -> None:
    log = create_log(store)
    with pytest.raises(ValueError, match="cannot follow"):
        log.maintenance.prepare_segment(0)
    fill_log(log, 2)
    with pytest.raises(ValueError, match="cannot follow"):
        log.maintenance.prepare_segment(1)
    prepared = log.maintenance.prepare_segment(2)
    fill_log(log, 1)
    with pytest.raises(ValueError, match="does not begin"):
        log.maintenance.roll(prepared)
    log.release()


def test_files_that_are_in_a_new_segments_way_are_emptied(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 2)
    for suffix in (".log", ".index", ".timeindex"):
        rewrite_file(store, name_file(2, suffix), lambda _: b"left by something else")
    roll_log(log)
    fill_log(log, 1)
    assert [header.base_offset for header in stored_headers(log)] == [0, 1, 2]
    log.close()
    again = reopen_log(store)
    assert store.files.read(store.path(name_file(2, ".log"))) == read_log(again, 2)
    again.close()


def test_sealing_moves_the_recovery_point(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 3)
    old = log.maintenance.roll(log.maintenance.prepare_segment(3))
    fill_log(log, 2)
    assert log.recovery_point == 0
    log.maintenance.seal(old)
    assert log.recovery_point == 3
    assert old.sealed
    assert log.flush() == 5 == log.recovery_point
    log.close()


def test_a_flush_seals_rolled_segments(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 3)
    old = log.maintenance.roll(log.maintenance.prepare_segment(3))
    assert log.flush() == 3
    assert old.sealed
    log.maintenance.seal(old)
    log.close()


def test_flush_is_overdue_after_flush_ms(store: Store) -> None:
    log = create_log(store, flush_ms=100)
    assert not log.maintenance.flush_is_overdue(NOW_MS * 2)
    append_batch(log, make_batch(), now_ms=NOW_MS)
    append_batch(log, make_batch(), now_ms=NOW_MS + 50)
    assert not log.maintenance.flush_is_overdue(NOW_MS + 100)
    assert log.maintenance.flush_is_overdue(NOW_MS + 101)
    log.flush()
    assert not log.maintenance.flush_is_overdue(NOW_MS + 101)
    log.close()
