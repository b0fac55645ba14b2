"""The states of a followed partition, answer by answer."""

from __future__ import annotations

import logging

import pytest

from kafkacompat.replication.fetch_state import (
    CHANGING,
    DELAYED,
    FAILED,
    FETCHING,
    OUT_OF_RANGE,
    PREDECESSORS,
    TRUNCATING,
    FetchState,
    find_error,
)
from kafkacompat.replication.log_changes import AppendFetched, LogChange, StartOver, Truncate
from kafkacompat.replication.partition_fetch import SYNC_CHECK_S, PartitionFetch
from kafkacompat.wire.apis import fetch as fetch_api
from kafkacompat.wire.apis.fetch import PartitionData
from kafkacompat.wire.apis.offset_for_leader_epoch import EpochEndOffset
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.kafkacompat.replication.replica_log import ReplicaLog, build_records

NOW_S = 100.0
BACKOFF_S = 1.0


def make_log(*epochs: int) -> ReplicaLog:
    """Return a log with one batch of one record for each epoch."""
    log = ReplicaLog()
    for epoch in epochs:
        log.produce(epoch, f"written in {epoch}")
    return log


def make_fetch(log: ReplicaLog, *, truncates_on_fetch: bool = True, leader_epoch: int = 9) -> PartitionFetch:
    return PartitionFetch(log, leader_epoch, truncates_on_fetch=truncates_on_fetch, backoff_s=BACKOFF_S)


def begin(log: ReplicaLog, *, truncates_on_fetch: bool = True) -> PartitionFetch:
    fetch = make_fetch(log, truncates_on_fetch=truncates_on_fetch)
    assert fetch.begin(NOW_S) is None
    return fetch


def make(fetch: PartitionFetch, change: LogChange | None) -> LogChange | None:
    """Make a change, and return the one that follows."""
    assert change is not None
    change.apply(fetch.partition)
    return fetch.finish_change(NOW_S)


def answer_epoch(fetch: PartitionFetch, epoch: int, end_offset: int, error: int = 0) -> LogChange | None:
    return fetch.answer_epoch(EpochEndOffset(error_code=error, leader_epoch=epoch, end_offset=end_offset), NOW_S)


def answer_fetch(
    fetch: PartitionFetch, records: bytes = b"", *, error: int = 0, high_watermark: int = 0, log_start_offset: int = 0
) -> LogChange | None:
    data = PartitionData(
        error_code=error, high_watermark=high_watermark, log_start_offset=log_start_offset, records=records
    )
    return fetch.answer_fetch(data, NOW_S)


def diverge(fetch: PartitionFetch, epoch: int, end_offset: int) -> LogChange | None:
    data = PartitionData(diverging_epoch=fetch_api.EpochEndOffset(epoch=epoch, end_offset=end_offset))
    return fetch.answer_fetch(data, NOW_S)


def test_every_state_has_a_row() -> None:
    assert set(PREDECESSORS) == set(FetchState)


def test_a_state_out_of_order_is_a_programming_error() -> None:
    fetch = begin(make_log(1))
    with pytest.raises(AssertionError, match="t-0: OUT_OF_RANGE cannot follow TRUNCATING"):
        fetch.state = TRUNCATING
        answer_fetch(fetch, error=ErrorCode.OFFSET_OUT_OF_RANGE)


# The beginning


def test_with_fetch_12_fetching_begins_at_once_and_names_the_last_epoch() -> None:
    fetch = begin(make_log(3, 5))
    assert (fetch.state, fetch.last_fetched_epoch) == (FETCHING, 5)


def test_before_fetch_12_the_leader_is_asked_first_and_fetches_name_no_epoch() -> None:
    fetch = begin(make_log(3, 5), truncates_on_fetch=False)
    assert (fetch.state, fetch.last_fetched_epoch) == (TRUNCATING, -1)


@pytest.mark.parametrize("truncates_on_fetch", [False, True])
def test_a_log_without_epochs_is_cut_at_its_high_watermark(truncates_on_fetch: bool) -> None:
    log = ReplicaLog()
    log.produce(-1, "a", "b", "c")
    log.high_watermark = 2
    fetch = make_fetch(log, truncates_on_fetch=truncates_on_fetch)
    assert make(fetch, fetch.begin(NOW_S)) is None
    assert (log.changes, log.log_end_offset, fetch.state) == ([("truncate", 2)], 2, FETCHING)


def test_an_empty_log_is_fetched_from_its_start() -> None:
    log = ReplicaLog()
    log.log_start_offset = log.log_end_offset = 7
    assert begin(log, truncates_on_fetch=False).state is FETCHING


def test_an_end_that_is_not_on_the_disk_is_not_reported() -> None:
    log = ReplicaLog(syncs=True)
    log.produce(1, "a")
    fetch = begin(log)
    assert (fetch.state, fetch.delayed_until_s) == (DELAYED, NOW_S + SYNC_CHECK_S)
    assert fetch.resume(NOW_S) is None
    assert fetch.state is DELAYED
    log.sync()
    fetch.resume(NOW_S)
    assert fetch.state is FETCHING


# Ends of epochs (KIP-101, KIP-279)


def test_a_log_that_agrees_is_left_alone() -> None:
    fetch = begin(make_log(1, 2), truncates_on_fetch=False)
    assert answer_epoch(fetch, 2, 8) is None
    assert (fetch.state, fetch.partition.log_end_offset) == (FETCHING, 2)


def test_an_epoch_without_batches_is_removed() -> None:
    log = make_log(1, 1)
    log.begin_epoch(3)
    fetch = begin(log, truncates_on_fetch=False)
    assert make(fetch, answer_epoch(fetch, 1, 8)) is None
    assert (fetch.state, log.last_epoch, log.log_end_offset) == (FETCHING, 1, 2)


def test_a_longer_epoch_is_cut_where_the_leaders_ends() -> None:
    fetch = begin(make_log(1, 1, 1), truncates_on_fetch=False)
    assert make(fetch, answer_epoch(fetch, 1, 2)) is None
    assert (fetch.state, fetch.partition.log_end_offset) == (FETCHING, 2)


def test_logs_are_compared_epoch_by_epoch_until_they_agree() -> None:
    log = make_log(1, 1, 3, 5)
    fetch = begin(log, truncates_on_fetch=False)
    # The leader has epoch 4 before its own, which this log does not have: everything after epoch 3 goes.
    assert make(fetch, answer_epoch(fetch, 4, 9)) is None
    assert (fetch.state, log.last_epoch, log.log_end_offset) == (TRUNCATING, 3, 3)
    assert make(fetch, answer_epoch(fetch, 2, 2)) is None
    assert (fetch.state, log.last_epoch, log.log_end_offset) == (TRUNCATING, 1, 2)
    assert make(fetch, answer_epoch(fetch, 1, 1)) is None
    assert (fetch.state, log.spans) == (FETCHING, [(1, 0)])


def test_a_leader_without_the_epoch_leaves_the_high_watermark() -> None:
    log = make_log(1, 1, 1)
    log.high_watermark = 1
    fetch = begin(log, truncates_on_fetch=False)
    assert make(fetch, answer_epoch(fetch, -1, -1)) is None
    assert log.log_end_offset == 1


def test_version_0_has_the_offset_only() -> None:
    log = make_log(1, 1, 1)
    fetch = begin(log, truncates_on_fetch=False)
    assert make(fetch, answer_epoch(fetch, -1, 2)) is None
    assert (fetch.state, log.log_end_offset) == (FETCHING, 2)


def test_an_epoch_below_all_own_ones_takes_the_leaders_end() -> None:
    log = make_log(4, 4)
    log.end_offset_for_epoch = lambda epoch: (-1, -1)  # type: ignore[method-assign]
    fetch = begin(log, truncates_on_fetch=False)
    assert answer_epoch(fetch, 2, 1) == Truncate(1)


def test_a_leader_that_ends_before_the_logs_start_lets_it_start_over() -> None:
    log = make_log(1, 1, 1)
    log.delete_records(2)
    fetch = begin(log, truncates_on_fetch=False)
    change = answer_epoch(fetch, 1, 1)
    assert change == StartOver(1)
    assert make(fetch, change) is None
    assert (fetch.state, log.log_start_offset, log.log_end_offset) == (FETCHING, 1, 1)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, FAILED),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, DELAYED),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, DELAYED),
        (ErrorCode.KAFKA_STORAGE_ERROR, DELAYED),
    ],
)
def test_errors_of_epoch_answers(error: ErrorCode, state: FetchState) -> None:
    fetch = begin(make_log(1), truncates_on_fetch=False)
    assert answer_epoch(fetch, -1, -1, error) is None
    assert fetch.state is state
    if state is DELAYED:
        fetch.resume(NOW_S)
        assert fetch.state is TRUNCATING


# Fetches


def test_batches_are_appended_and_the_lag_counts_to_the_leaders_high_watermark() -> None:
    log = make_log(1)
    fetch = begin(log)
    assert make_fetch(log).lag is None
    records = build_records("new", count=3, base_offset=1, leader_epoch=1)
    change = answer_fetch(fetch, records, high_watermark=9)
    assert change == AppendFetched(records, 9, 0)
    assert fetch.state is CHANGING
    assert make(fetch, change) is None
    assert (fetch.state, log.log_end_offset, fetch.lag, fetch.is_in_sync) == (FETCHING, 4, 5, False)


def test_an_answer_without_data_brings_the_high_watermark() -> None:
    log = make_log(1, 1)
    fetch = begin(log)
    assert make(fetch, answer_fetch(fetch, high_watermark=1)) is None
    assert (log.high_watermark, fetch.lag, fetch.is_in_sync) == (1, 0, True)


def test_a_diverging_epoch_cuts_the_log() -> None:
    log = make_log(1, 1, 3)
    fetch = begin(log)
    assert make(fetch, diverge(fetch, 2, 5)) is None
    assert (fetch.state, log.spans, fetch.last_fetched_epoch) == (FETCHING, [(1, 0), (1, 1)], 1)
    assert make(fetch, diverge(fetch, 1, 1)) is None
    assert (fetch.state, log.spans) == (FETCHING, [(1, 0)])


def test_a_log_before_a_start_inside_a_batch_starts_over() -> None:
    log = make_log(1, 1, 1)
    fetch = begin(log)
    records = build_records("x", count=3, base_offset=2, leader_epoch=4)
    change = answer_fetch(fetch, records, log_start_offset=3)
    assert change == StartOver(3)
    assert make(fetch, change) is None
    assert make(fetch, answer_fetch(fetch, records, log_start_offset=3)) is None
    assert (fetch.state, log.spans, log.log_end_offset) == (FETCHING, [(4, 2)], 5)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, OUT_OF_RANGE),
        (ErrorCode.FENCED_LEADER_EPOCH, FAILED),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, DELAYED),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, DELAYED),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, DELAYED),
        (ErrorCode.UNKNOWN_TOPIC_ID, DELAYED),
        (ErrorCode.INCONSISTENT_TOPIC_ID, DELAYED),
        (ErrorCode.KAFKA_STORAGE_ERROR, DELAYED),
        (ErrorCode.CORRUPT_MESSAGE, DELAYED),
        (ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE, DELAYED),
        (9999, DELAYED),
    ],
)
def test_errors_of_fetches(error: int, state: FetchState) -> None:
    fetch = begin(make_log(1))
    assert answer_fetch(fetch, error=error) is None
    assert fetch.state is state
    if state is DELAYED:
        assert fetch.delayed_until_s == NOW_S + BACKOFF_S
        fetch.resume(NOW_S)
        assert fetch.state is FETCHING


def test_an_unknown_error_has_a_name() -> None:
    assert find_error(9999) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_delay_after_a_fetch_does_not_cut_a_log_without_epochs() -> None:
    log = ReplicaLog()
    fetch = begin(log)
    make(fetch, answer_fetch(fetch, build_records("old format", leader_epoch=-1)))
    answer_fetch(fetch, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert fetch.resume(NOW_S) is None
    assert (fetch.state, log.log_end_offset, log.high_watermark) == (FETCHING, 1, 0)


def test_only_the_first_of_equal_problems_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    fetch = begin(make_log(1))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            answer_fetch(fetch, error=ErrorCode.CORRUPT_MESSAGE)
            fetch.resume(NOW_S)
        answer_fetch(fetch, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert caplog.messages == ["Delayed fetching of t-0: CORRUPT_MESSAGE"]


# Offsets out of range


def make_out_of_range(log: ReplicaLog, *, truncates_on_fetch: bool = True) -> PartitionFetch:
    fetch = begin(log, truncates_on_fetch=truncates_on_fetch)
    if fetch.state is TRUNCATING:
        answer_epoch(fetch, log.last_epoch, 1000)
    answer_fetch(fetch, error=ErrorCode.OFFSET_OUT_OF_RANGE)
    return fetch


@pytest.mark.parametrize(("truncates_on_fetch", "state"), [(True, FETCHING), (False, TRUNCATING)])
def test_a_log_beyond_the_leaders_end_is_cut_there_and_compared_again(
    truncates_on_fetch: bool, state: FetchState
) -> None:
    log = make_log(1, 1, 1)
    fetch = make_out_of_range(log, truncates_on_fetch=truncates_on_fetch)
    assert make(fetch, fetch.answer_leader_end(0, 2, NOW_S)) is None
    assert (fetch.state, log.log_end_offset, fetch.lag) == (state, 2, 0)


def test_a_log_before_the_leaders_start_starts_over() -> None:
    log = make_log(1, 1, 1)
    fetch = make_out_of_range(log)
    assert fetch.answer_leader_end(0, 60, NOW_S) is None
    assert fetch.state is OUT_OF_RANGE
    change = fetch.answer_leader_start(0, 50, NOW_S)
    assert change == StartOver(50)
    assert make(fetch, change) is None
    assert (fetch.state, log.log_start_offset, log.log_end_offset, fetch.lag) == (FETCHING, 50, 50, 10)


def test_a_log_that_is_in_range_meanwhile_is_fetched_on() -> None:
    log = make_log(1, 1, 1)
    fetch = make_out_of_range(log)
    assert fetch.answer_leader_end(0, 5, NOW_S) is None
    assert fetch.answer_leader_start(0, 1, NOW_S) is None
    assert (fetch.state, log.changes, fetch.lag) == (FETCHING, [], 2)


def test_errors_of_offset_answers() -> None:
    fenced = make_out_of_range(make_log(1))
    fenced.answer_leader_end(ErrorCode.FENCED_LEADER_EPOCH, -1, NOW_S)
    assert fenced.state is FAILED
    moved = make_out_of_range(make_log(1))
    moved.answer_leader_end(0, 5, NOW_S)
    moved.answer_leader_start(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, NOW_S)
    assert moved.state is DELAYED
    moved.resume(NOW_S)
    assert moved.state is FETCHING


# Changes that fail


@pytest.mark.parametrize(
    ("problem", "state"),
    [
        (KafkaError(ErrorCode.CORRUPT_MESSAGE), DELAYED),
        (KafkaError(ErrorCode.INVALID_RECORD), DELAYED),
        (KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space"), DELAYED),
        (KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), FAILED),
        (OSError("read-only"), FAILED),
    ],
)
def test_an_append_that_fails(problem: Exception, state: FetchState) -> None:
    fetch = begin(make_log(1))
    assert answer_fetch(fetch, build_records("x", base_offset=1)) is not None
    fetch.fail_change(problem, NOW_S)
    assert fetch.state is state


def test_a_truncation_that_fails_is_made_again() -> None:
    log = make_log(1, 1)
    fetch = begin(log, truncates_on_fetch=False)
    assert answer_epoch(fetch, 1, 1) == Truncate(1)
    fetch.fail_change(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), NOW_S)
    fetch.resume(NOW_S)
    assert fetch.state is TRUNCATING


def test_records_that_move_nothing_are_not_fetched_again_at_once() -> None:
    fetch = begin(make_log(1))
    change = answer_fetch(fetch, b"cut off")
    assert change is not None
    assert fetch.finish_change(NOW_S) is None
    assert fetch.state is DELAYED


def test_a_truncation_that_moves_nothing_is_not_repeated_at_once() -> None:
    fetch = begin(make_log(1), truncates_on_fetch=False)
    assert answer_epoch(fetch, 0, 0) is not None
    assert fetch.finish_change(NOW_S) is None
    assert fetch.state is DELAYED
    fetch.resume(NOW_S)
    assert fetch.state is TRUNCATING
