"""Writes one partition of a coordinator's topic: in order, with a deadline, in the coordinator's error codes."""

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

# What a log's refusal means to a coordinator's client; other codes are passed on.
COORDINATOR_ERRORS: dict[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


@dataclass(slots=True, eq=False)
class _Write:
    """One append under way; ``outcome`` is the log's, ``answer`` may be given earlier when time is up."""

    deadline: float
    decided: Callable[[ErrorCode], None]
    answer: Deferred[ErrorCode] = field(default_factory=Deferred)
    outcome: ErrorCode | None = None
    is_answered: bool = False
    waiting: list[Deferred[bool]] = field(default_factory=list)


class Writer:
    """The writing side of one partition: an answer waits *timeout_ms* at most, batches are packed with *codec*."""

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
        decided: Callable[[ErrorCode], None] = lambda _: None,
        producer: LogProducer | None = None,
    ) -> Deferred[ErrorCode]:
        """Append *records* as one batch; fires with NONE or the error for the client, and never fails.

        ``decided`` is called with the log's outcome in the order of the writes and before the answer, also
        when the answer could not wait for it. With a *producer* the batch is part of its transaction.
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
        return self._append(lambda: self._log.append(self._partition, batch, guard), decided, COORDINATOR_ERRORS).answer

    def append(self, append: Callable[[], object], decided: Callable[[ErrorCode], None]) -> None:
        """Have something else appended in line with the writes; ``decided`` is told the log's own code, however late."""
        self._append(append, decided, {})

    def _append(
        self,
        append: Callable[[], object],
        decided: Callable[[ErrorCode], None],
        in_words: Mapping[ErrorCode, ErrorCode],
    ) -> _Write:
        write = _Write(self._clock.seconds() + self._timeout, decided)
        self._under_way.append(write)
        outcome = maybeDeferred(append).addCallbacks(lambda _: ErrorCode.NONE, self._refused, errbackArgs=(in_words,))
        outcome.addCallback(self._settle, write)
        self._watch()
        return write

    def settled(self) -> Deferred[bool] | None:
        """Wait for every write so far; True once the log has decided on all of them, False when time is up.

        None when there is nothing to wait for.
        """
        if not self._under_way:
            return None
        waiting: Deferred[bool] = Deferred()
        self._under_way[-1].waiting.append(waiting)
        return waiting

    def _refused(self, failure: Failure, in_words: Mapping[ErrorCode, ErrorCode]) -> ErrorCode:
        if isinstance(failure.value, KafkaError):
            return in_words.get(failure.value.code, failure.value.code)
        log.error("an append to %s-%d failed", self._log.topic, self._partition, exc_info=failure.value)
        return ErrorCode.UNKNOWN_SERVER_ERROR

    def _settle(self, outcome: ErrorCode, write: _Write) -> None:
        write.outcome = outcome
        # What is decided leads to more writes, whose turn comes behind it: inside of each other very many would be too deep.
        if self._is_settling:
            return
        self._is_settling = True
        try:
            self._settle_in_order()
        finally:
            self._is_settling = False
        self._watch()

    def _settle_in_order(self) -> None:
        while self._under_way and (outcome := self._under_way[0].outcome) is not None:
            first = self._under_way.popleft()
            first.decided(outcome)
            _answer(first, outcome, settled=True)

    def _watch(self) -> None:
        """Have one timer for all writes that are not decided; most are over before it matters."""
        if self._timer is None and self._under_way and not self._is_settling:
            delay = max(0.0, self._under_way[0].deadline - self._clock.seconds())
            self._timer = self._clock.callLater(delay, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        now = self._clock.seconds()
        late = [write for write in self._under_way if write.deadline <= now]
        for write in late:
            _answer(write, COORDINATOR_ERRORS[ErrorCode.REQUEST_TIMED_OUT], settled=False)
        waiting = [write for write in self._under_way if write.deadline > now]
        if waiting and self._timer is None:
            self._timer = self._clock.callLater(waiting[0].deadline - now, self._check_deadlines)


def _answer(write: _Write, code: ErrorCode, *, settled: bool) -> None:
    if not write.is_answered:
        write.is_answered = True
        write.answer.callback(code)
    waiting, write.waiting = write.waiting, []
    for one in waiting:
        one.callback(settled)
