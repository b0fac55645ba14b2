"""Writing to one partition of a coordinator's topic: in order, with a deadline, in the coordinator's error codes."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from kafkacompat.coordination.coordinator_log import NO_PRODUCER, CoordinatorLog, LogProducer, Record
from kafkacompat.timers import Clock, DelayedCall, now_ms
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import build_batch

log = logging.getLogger(__name__)

# The code for a coordinator's client, by the code that the log rejects an append with; other codes are passed on.
COORDINATOR_ERRORS: dict[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


@dataclass(slots=True, eq=False)
class _Write:
    """One append under way. ``outcome`` is the log's; ``answer`` fires earlier if the deadline passes."""

    deadline: float
    on_outcome: Callable[[ErrorCode], None]
    answer: Deferred[ErrorCode] = field(default_factory=Deferred)
    outcome: ErrorCode | None = None
    is_answered: bool = False
    waiting: list[Deferred[bool]] = field(default_factory=list)


class ShardWriter:
    """Writes to one partition. A caller waits at most *timeout_ms* for a result; batches are compressed with *codec*."""

    def __init__(
        self, partition: int, coordinator_log: CoordinatorLog, clock: Clock, *, timeout_ms: int, codec: int = 0
    ) -> None:
        self._partition = partition
        self._log = coordinator_log
        self._clock = clock
        self._timeout = timeout_ms / 1000
        self._codec = codec
        self._under_way: deque[_Write] = deque()
        self._is_settling = False
        self._timer: DelayedCall | None = None

    def write(
        self,
        records: Sequence[Record],
        on_outcome: Callable[[ErrorCode], None] = lambda _: None,
        producer: LogProducer | None = None,
    ) -> Deferred[ErrorCode]:
        """Append *records* as one batch. Fires with NONE or the error for the client, and never fails.

        ``on_outcome`` is called with the log's outcome, in the order of the writes. It is called before the Deferred fires, except
        if the deadline passed first. With a *producer* the batch is part of its transaction.
        """
        timestamp = now_ms(self._clock)
        producer_id, epoch, guard = producer or (NO_PRODUCER, NO_PRODUCER, None)
        batch = build_batch(
            [(timestamp, key, value, ()) for key, value in records],
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            transactional=producer is not None,
        )
        return self._append(
            lambda: self._log.append(self._partition, batch, guard), on_outcome, COORDINATOR_ERRORS
        ).answer

    def append_in_order(self, append: Callable[[], object], on_outcome: Callable[[ErrorCode], None]) -> None:
        """Call *append*, which appends something else, in order with the writes. ``on_outcome`` receives the log's own code."""
        self._append(append, on_outcome, {})

    def _append(
        self,
        append: Callable[[], object],
        on_outcome: Callable[[ErrorCode], None],
        codes: Mapping[ErrorCode, ErrorCode],
    ) -> _Write:
        write = _Write(self._clock.seconds() + self._timeout, on_outcome)
        self._under_way.append(write)
        outcome = maybeDeferred(append).addCallbacks(
            lambda _: ErrorCode.NONE, self._as_error_code, errbackArgs=(codes,)
        )
        outcome.addCallback(self._settle, write)
        self._start_timer()
        return write

    def wait_for_writes(self) -> Deferred[bool] | None:
        """Wait for the writes so far. Fires with True once the log has decided on all of them, with False at the deadline.

        Returns None if there is nothing to wait for.
        """
        if not self._under_way:
            return None
        waiting: Deferred[bool] = Deferred()
        self._under_way[-1].waiting.append(waiting)
        return waiting

    def _as_error_code(self, failure: Failure, codes: Mapping[ErrorCode, ErrorCode]) -> ErrorCode:
        if isinstance(failure.value, KafkaError):
            return codes.get(failure.value.code, failure.value.code)
        log.error("Failed to append to %s-%d", self._log.topic, self._partition, exc_info=failure.value)
        return ErrorCode.UNKNOWN_SERVER_ERROR

    def _settle(self, outcome: ErrorCode, write: _Write) -> None:
        write.outcome = outcome
        # An outcome may lead to more writes. The loop takes them up afterwards: nested calls could become too deep.
        if self._is_settling:
            return
        self._is_settling = True
        try:
            self._settle_in_order()
        finally:
            self._is_settling = False
        self._start_timer()

    def _settle_in_order(self) -> None:
        while self._under_way and (outcome := self._under_way[0].outcome) is not None:
            first = self._under_way.popleft()
            first.on_outcome(outcome)
            _answer_write(first, outcome, settled=True)

    def _start_timer(self) -> None:
        """Keep one timer for all writes under way; most of them end long before it fires."""
        if self._timer is None and self._under_way and not self._is_settling:
            delay = max(0.0, self._under_way[0].deadline - self._clock.seconds())
            self._timer = self._clock.callLater(delay, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        now = self._clock.seconds()
        late = [write for write in self._under_way if write.deadline <= now]
        for write in late:
            _answer_write(write, COORDINATOR_ERRORS[ErrorCode.REQUEST_TIMED_OUT], settled=False)
        waiting = [write for write in self._under_way if write.deadline > now]
        if waiting and self._timer is None:
            self._timer = self._clock.callLater(waiting[0].deadline - now, self._check_deadlines)


def _answer_write(write: _Write, code: ErrorCode, *, settled: bool) -> None:
    if not write.is_answered:
        write.is_answered = True
        write.answer.callback(code)
    waiting, write.waiting = write.waiting, []
    for deferred in waiting:
        deferred.callback(settled)
