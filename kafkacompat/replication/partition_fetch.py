"""The fetch state of one followed partition: answers of the leader in, changes of the log out.

It sends nothing and waits for nothing. A method that takes an answer returns the change that the log needs, or None. The
caller makes the change and then calls `finish_change` or `fail_change`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from kafkacompat.replication.fetch_state import (
    CHANGING,
    DELAYED,
    FAILED,
    FETCHING,
    ON_CHANGE_ERROR,
    ON_EPOCH_ERROR,
    ON_FETCH_ERROR,
    PREDECESSORS,
    TRANSIENT_ERRORS,
    TRUNCATING,
    WAITING,
    FetchState,
    find_error,
)
from kafkacompat.replication.log_changes import AppendFetched, LogChange, StartOver, Truncate
from kafkacompat.wire.batch_header import HEADER_SIZE, read_header
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.replication.follower import FollowerReplica
    from kafkacompat.wire.apis.fetch import PartitionData
    from kafkacompat.wire.apis.offset_for_leader_epoch import EpochEndOffset
    from kafkacompat.wire.primitives import Buffer

log = logging.getLogger(__name__)

IN_RANGE = "the leader refuses an offset that its log has"
"""The problem of a partition whose leader cannot place its last epoch."""

SYNC_CHECK_S = 0.005
"""Pause until the next look at a log whose end is not on the disk yet, while only its present contents are reported."""


class PartitionFetch:
    """One partition in one leader epoch.

    ``truncates_on_fetch`` is that of `FetchSettings`; times are seconds of the caller's clock.
    """

    __slots__ = (
        "_backoff_s",
        "_change",
        "_leader_high_watermark",
        "_next",
        "_position",
        "_problem",
        "_truncates_on_fetch",
        "delayed_until_s",
        "lag",
        "leader_epoch",
        "partition",
        "state",
    )

    def __init__(
        self, partition: FollowerReplica, leader_epoch: int, *, truncates_on_fetch: bool, backoff_s: float
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.state: FetchState = WAITING
        self.lag: int | None = None
        """Offsets that the leader's committed records are ahead of this log; None before the first answer."""
        self.delayed_until_s = 0.0
        self._truncates_on_fetch = truncates_on_fetch
        self._backoff_s = backoff_s
        self._next: FetchState = TRUNCATING
        self._change: LogChange | None = None
        self._position = (-1, -1)
        self._leader_high_watermark = -1
        self._problem: object = None

    @property
    def is_in_sync(self) -> bool:
        """Whether the log holds everything that the leader knows to be committed; throttles leave it alone then."""
        return self.lag is not None and self.lag <= 0

    @property
    def last_fetched_epoch(self) -> int:
        """The epoch that a fetch names, so that the leader can tell a diverging log; -1 for none."""
        return self.partition.last_epoch if self._truncates_on_fetch else -1

    def _enter(self, state: FetchState) -> None:
        if self.state not in PREDECESSORS[state]:
            raise AssertionError(f"{self.partition!r}: {state.name} cannot follow {self.state.name}")
        self.state = state

    # Starting and pausing

    def begin(self, now_s: float) -> LogChange | None:
        """Begin to follow the leader of this epoch, or begin again: the log may diverge from the leader's."""
        partition = self.partition
        if partition.last_epoch < 0:
            high_watermark = max(partition.high_watermark, partition.log_start_offset)
            if high_watermark < partition.log_end_offset:
                return self._change_log(Truncate(high_watermark), FETCHING)
            return self._fetch(now_s)
        if self._truncates_on_fetch:
            return self._fetch(now_s)
        self._enter(TRUNCATING)
        return None

    def resume(self, now_s: float) -> LogChange | None:
        """End a delay."""
        return self._fetch(now_s) if self._next is FETCHING else self.begin(now_s)

    def _fetch(self, now_s: float) -> LogChange | None:
        partition = self.partition
        if partition.reported_end_offset < partition.log_end_offset:
            # A fetch at the log's end would report what a power failure can still take away.
            self._pause(FETCHING, now_s + SYNC_CHECK_S)
        else:
            self._enter(FETCHING)
        return None

    def _pause(self, next_state: FetchState, until_s: float) -> None:
        self._enter(DELAYED)
        self._next = next_state
        self.delayed_until_s = until_s

    def delay(self, problem: object, now_s: float) -> None:
        """Try again after ``replica.fetch.backoff.ms``; the first of equal problems in a row is logged."""
        if problem != self._problem:
            level = logging.DEBUG if problem in TRANSIENT_ERRORS else logging.WARNING
            log.log(level, "Delayed fetching of %r: %s", self.partition, _describe(problem))
            self._problem = problem
        self._pause(self._state_after_delay(), now_s + self._backoff_s)

    def _state_after_delay(self) -> FetchState:
        """Return TRUNCATING if the logs may still diverge."""
        may_diverge = self.state is TRUNCATING or (
            self.state is CHANGING and not isinstance(self._change, AppendFetched)
        )
        return TRUNCATING if may_diverge else FETCHING

    def fail(self, problem: object) -> None:
        """Do nothing more in this leader epoch."""
        if isinstance(problem, Exception) and not isinstance(problem, KafkaError):
            log.error("%r cannot be followed", self.partition, exc_info=problem)
        log.warning(
            "Stopped fetching of %r in leader epoch %d: %s", self.partition, self.leader_epoch, _describe(problem)
        )
        self._enter(FAILED)

    # Answers of the leader

    def answer_epoch(self, answer: EpochEndOffset, now_s: float) -> LogChange | None:
        """Take the end of the log's last epoch on the leader."""
        if answer.error_code:
            self._refuse(ON_EPOCH_ERROR, answer.error_code, now_s)
            return None
        offset, agreed = self._find_truncation(answer.leader_epoch, answer.end_offset)
        if not agreed:
            return self._change_log(Truncate(offset), TRUNCATING)
        has_empty_epoch = 0 <= answer.leader_epoch < self.partition.last_epoch
        if offset < self.partition.log_end_offset or has_empty_epoch:
            # An epoch in which this broker led and wrote nothing goes, too: the leader's batches have an earlier one.
            return self._change_log(Truncate(offset), FETCHING)
        return self._fetch(now_s)

    def _find_truncation(self, leader_epoch: int, end_offset: int) -> tuple[int, bool]:
        """Return the offset to truncate to, and whether the logs agree below it.

        The leader has *leader_epoch* as its largest epoch up to that of this log's last batch, and it ends at *end_offset*.
        -1 stands for none (KIP-101); before OffsetForLeaderEpoch 1 the leader does not say its epoch (KIP-279).
        """
        partition = self.partition
        log_end_offset = partition.log_end_offset
        if end_offset < 0:
            return min(max(partition.high_watermark, partition.log_start_offset), log_end_offset), True
        if leader_epoch < 0:
            return min(end_offset, log_end_offset), True
        own_epoch, own_end_offset = partition.end_offset_for_epoch(leader_epoch)
        if own_epoch < 0:
            # The log has only newer epochs, so nothing below the leader's end can be compared.
            return min(end_offset, log_end_offset), True
        if own_epoch == leader_epoch:
            return min(end_offset, own_end_offset, log_end_offset), True
        return min(own_end_offset, log_end_offset), False

    def answer_fetch(self, data: PartitionData, now_s: float) -> LogChange | None:
        """Take the leader's data or its error."""
        if data.error_code:
            self._refuse(ON_FETCH_ERROR, data.error_code, now_s)
            return None
        diverging = data.diverging_epoch
        if diverging.epoch >= 0:
            offset, _ = self._find_truncation(diverging.epoch, diverging.end_offset)
            return self._change_log(Truncate(offset), TRUNCATING)
        self._leader_high_watermark = data.high_watermark
        # A message that was read from a connection holds no file regions.
        records = cast("Buffer", data.records or b"")
        if self._lies_before_leader(records, data.log_start_offset):
            return self._change_log(StartOver(self.partition.log_end_offset), TRUNCATING)
        return self._change_log(AppendFetched(records, data.high_watermark, data.log_start_offset), FETCHING)

    def _lies_before_leader(self, records: Buffer, leader_log_start_offset: int) -> bool:
        """Return whether the leader deleted all offsets of this log, up to the middle of the batch that comes next.

        Epochs cannot be compared there, so this log may diverge; an empty log can take the whole batch.
        """
        partition = self.partition
        if len(records) < HEADER_SIZE or not partition.log_start_offset < partition.log_end_offset:
            return False
        begins_earlier = read_header(records).base_offset < partition.log_end_offset
        return begins_earlier and partition.log_end_offset <= leader_log_start_offset

    def answer_leader_end(self, error_code: int, leader_end_offset: int, now_s: float) -> LogChange | None:
        """Take the leader's log end offset; the state stays OUT_OF_RANGE if its log start offset is needed, too."""
        if error_code:
            self._refuse(ON_EPOCH_ERROR, error_code, now_s)
            return None
        if leader_end_offset < self.partition.log_end_offset:
            # An unclean election: the leader lost records that this log has.
            self.lag = 0
            return self._change_log(Truncate(leader_end_offset), TRUNCATING)
        self._leader_high_watermark = leader_end_offset
        return None

    def answer_leader_start(self, error_code: int, leader_start_offset: int, now_s: float) -> LogChange | None:
        """Take the leader's log start offset, which follows `answer_leader_end`."""
        if error_code:
            self._refuse(ON_EPOCH_ERROR, error_code, now_s)
            return None
        log_end_offset = self.partition.log_end_offset
        self.lag = max(0, self._leader_high_watermark - max(leader_start_offset, log_end_offset))
        if leader_start_offset > log_end_offset:
            return self._change_log(StartOver(leader_start_offset), TRUNCATING)
        if self._problem == IN_RANGE:
            self.delay(IN_RANGE, now_s)
            return None
        # The leader's log may have grown meanwhile.
        self._problem = IN_RANGE
        return self._fetch(now_s)

    def _refuse(self, table: dict[ErrorCode, FetchState], error_code: int, now_s: float) -> None:
        error = find_error(error_code)
        state = table.get(error, DELAYED)
        if state is DELAYED:
            self.delay(error, now_s)
        elif state is FAILED:
            self.fail(error)
        else:
            self._enter(state)

    # Changes of the log

    def _change_log(self, change: LogChange, next_state: FetchState) -> LogChange:
        partition = self.partition
        if isinstance(change, Truncate) and change.offset < partition.log_start_offset:
            change = StartOver(change.offset)
        if not isinstance(change, AppendFetched):
            log.info(
                "Truncating %r from %d to %d in leader epoch %d",
                partition, partition.log_end_offset, change.offset, self.leader_epoch,
            )  # fmt: skip
            if change.offset < partition.high_watermark:
                log.warning("%r is truncated below its high watermark %d", partition, partition.high_watermark)
        self._enter(CHANGING)
        self._change = change
        self._next = next_state
        self._position = (partition.log_end_offset, partition.last_epoch)
        return change

    def finish_change(self, now_s: float) -> LogChange | None:
        """Go on after a change of the log."""
        partition, change = self.partition, self._change
        must_move = True
        if isinstance(change, AppendFetched):
            self.lag = max(0, self._leader_high_watermark - partition.log_end_offset)
            must_move = len(change.records) > 0
        if must_move and (partition.log_end_offset, partition.last_epoch) == self._position:
            # The next answer would be the same.
            self.delay("the leader's answer changed nothing", now_s)
            return None
        self._problem = self._change = None
        return self._fetch(now_s) if self._next is FETCHING else self.begin(now_s)

    def fail_change(self, problem: Exception, now_s: float) -> None:
        """Go on after a change of the log that failed."""
        state = ON_CHANGE_ERROR.get(problem.code, FAILED) if isinstance(problem, KafkaError) else FAILED
        if state is FAILED:
            self.fail(problem)
        else:
            self.delay(str(problem), now_s)


def _describe(problem: object) -> object:
    return problem.name if isinstance(problem, ErrorCode) else problem
