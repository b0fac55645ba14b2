"""Choosing the segments to compact, by Kafka's rules."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.storage.compaction import CleanableRange
from kafkacompat.storage.log.log import Log
from tests.storage.compaction.support import COMPACTED
from tests.storage.support import NOW_MS, Store, append_batch, create_log, make_batch, roll_log

BATCH_BYTES = len(make_batch())


def log_of(memory: Store, segments: int, **config: Any) -> Log:
    """Create a log with some sealed segments of two records, a second apart, and an active one."""
    log = create_log(memory, **COMPACTED, **config)
    for number in range(segments):
        append_batch(log, make_batch(timestamp=NOW_MS + 1000 * number), now_ms=NOW_MS)
        append_batch(log, make_batch(timestamp=NOW_MS + 1000 * number + 1), now_ms=NOW_MS)
        roll_log(log)
    append_batch(log, make_batch())
    return log


def find_cleanable(log: Log, now_ms: int = NOW_MS, stable_offset: int = 1 << 40) -> CleanableRange | None:
    return log.compaction.find_cleanable(stable_offset=stable_offset, now_ms=now_ms)


def test_everything_below_the_active_segment_is_dirty_at_first(memory: Store) -> None:
    assert find_cleanable(log_of(memory, 3)) == CleanableRange(0, 6, 6 * BATCH_BYTES, 1.0, False)


def test_a_log_with_one_segment_has_nothing_to_compact(memory: Store) -> None:
    assert find_cleanable(log_of(memory, 0)) is None


def test_compacted_segments_are_not_dirty(memory: Store) -> None:
    log = log_of(memory, 4)
    log.cleaner_offset = 6
    assert find_cleanable(log) == CleanableRange(6, 8, 2 * BATCH_BYTES, 0.25, False)
    log.cleaner_offset = 5  # its segment counts as dirty and as clean
    assert find_cleanable(log) == CleanableRange(5, 8, 4 * BATCH_BYTES, 0.4, False)
    log.cleaner_offset = 8
    assert find_cleanable(log) is None


@pytest.mark.parametrize("checkpoint", [1, 100])
def test_a_checkpoint_that_cannot_be_does_not_count(memory: Store, checkpoint: int) -> None:
    log = log_of(memory, 3)
    log.trimmer.advance_log_start_offset(2)
    log.cleaner_offset = checkpoint
    cleanable = find_cleanable(log)
    assert cleanable is not None
    assert cleanable.first_dirty_offset == 2


@pytest.mark.parametrize(("stable_offset", "end"), [(0, None), (1, None), (2, 2), (3, 2), (4, 4), (6, 6), (7, 6)])
def test_only_whole_segments_before_the_stable_offset_are_compacted(
    memory: Store, stable_offset: int, end: int | None
) -> None:
    cleanable = find_cleanable(log_of(memory, 3), stable_offset=stable_offset)
    assert (cleanable.end_offset if cleanable else None) == end


@pytest.mark.parametrize(("later_ms", "end"), [(100, None), (101, 2), (1100, 2), (1101, 4), (9000, 6)])
def test_none_from_the_first_segment_that_is_too_young(memory: Store, later_ms: int, end: int | None) -> None:
    cleanable = find_cleanable(log_of(memory, 3, min_compaction_lag_ms=100), NOW_MS + later_ms)
    assert (cleanable.end_offset if cleanable else None) == end


def test_unsealed_segments_are_not_compacted(memory: Store) -> None:
    log = log_of(memory, 2)
    log.maintenance.roll(log.maintenance.prepare_segment(log.log_end_offset))
    cleanable = find_cleanable(log)
    assert cleanable is not None
    assert cleanable.end_offset == 4


def test_a_compaction_is_due_above_the_dirty_ratio(memory: Store) -> None:
    log = log_of(memory, 4)
    log.cleaner_offset = 6
    cleanable = find_cleanable(log)
    assert cleanable is not None
    due = [cleanable.is_due(log.config.__class__(min_cleanable_dirty_ratio=ratio)) for ratio in (0.24, 0.25, 0.26)]
    assert due == [True, False, False]


def test_or_when_a_dirty_segment_is_too_old(memory: Store) -> None:
    log = log_of(memory, 4, max_compaction_lag_ms=5000, min_cleanable_dirty_ratio=1.0)
    log.cleaner_offset = 4
    for later_ms, due in ((7000, False), (7001, True)):
        cleanable = find_cleanable(log, NOW_MS + later_ms)
        assert cleanable is not None
        assert cleanable.is_due(log.config) is due
