"""The order of one partition's appends while its log gets a new segment or moves.

An append is made at once unless the log needs a new segment first. Then it and all later appends wait in line while the
disk thread makes the segment's files: no append overtakes another, and the reactor waits for no disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from twisted.internet.defer import Deferred, fail, maybeDeferred

from kafkacompat.partitions.partition_appender import Appended, remember_refused
from kafkacompat.storage.intake.validation import CheckedBatch
from kafkacompat.storage.log.log import AppendResult, RollNeededError
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import Guard
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.partitions.partition_appender import PartitionAppender
    from kafkacompat.partitions.partition_state import PartitionState

Result = TypeVar("Result")


class LineEntry(Protocol):
    """An append that keeps its place in the line until it is made."""

    result: Deferred[Any]

    def append(self) -> Any:
        """Append now. Raises RollNeededError when the log needs a new segment first, and KafkaError."""

    def note_refused(self) -> None:
        """Note that the disk cannot take it."""


@dataclass(slots=True)
class HeldAppend:
    """An append as leader."""

    appender: PartitionAppender
    entry: Buffer | CheckedBatch | Marker
    now_ms: int
    from_client: bool
    guard: Guard | None
    result: Deferred[AppendResult] = field(default_factory=Deferred)

    def append(self) -> Appended:
        """See LineEntry.append."""
        return self.appender.append(self.entry, self.now_ms, self.from_client, self.guard)

    def note_refused(self) -> None:
        """See LineEntry.note_refused."""
        remember_refused(self.appender.log, self.entry)


@dataclass(slots=True)
class HeldWork:
    """Work in line during which no append is made; `begin` starts it."""

    begin: Callable[[], Deferred[Any]]
    result: Deferred[Any] = field(default_factory=Deferred)

    def note_refused(self) -> None:
        """Nothing has to be noted."""


class AppendQueue:
    """Hands appends to the appender, at once or in line.

    ``is_holding`` says whether appends wait in line; an append that waits otherwise is in the log already.
    """

    __slots__ = ("_appender", "_held", "_state", "is_alone", "is_holding", "works")

    def __init__(self, state: PartitionState, appender: PartitionAppender) -> None:
        self._state = state
        self._appender = appender
        self._held: deque[LineEntry | HeldWork] = deque()
        self.is_holding = False
        self.is_alone = False
        """Whether work of `run_alone` is under way."""
        self.works = 0
        """How many works of `run_alone` are under way or in line."""

    def append(
        self,
        records: Buffer | CheckedBatch,
        now_ms: int,
        *,
        from_client: bool = True,
        guard: Guard | None = None,
    ) -> Appended:
        """Append one batch as leader, now if possible; a batch that is not checked yet must be quick to check.

        A batch that begins a transaction needs its `guard`. Raises KafkaError for a batch that is rejected at once; a
        later rejection fails the Deferred.
        """
        if from_client:
            try:
                if self._state.account is not None:
                    self._state.account.check_room()
                self._state.host.space.reserve(len(records))
            except KafkaError:
                remember_refused(self._state.log, records)
                raise
        if not self.is_holding:
            try:
                return self._appender.append(records, now_ms, from_client, guard)
            except RollNeededError:
                pass
        return self._hold(HeldAppend(self._appender, records, now_ms, from_client, guard))

    def append_marker(self, marker: Marker, now_ms: int) -> Appended:
        """Append the end of a transaction, after the appends in line.

        Raises, or fails with, KafkaError INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED or KAFKA_STORAGE_ERROR.
        """
        if not self.is_holding:
            try:
                return self._appender.append(marker, now_ms, False, None)
            except RollNeededError:
                pass
        return self._hold(HeldAppend(self._appender, marker, now_ms, False, None))

    def append_entry(self, entry: LineEntry) -> Any:
        """Append an entry, now if possible; returns its outcome or a Deferred of it. Raises what the entry raises at once."""
        if not self.is_holding:
            try:
                return entry.append()
            except RollNeededError:
                pass
        return self._hold(entry)

    def _hold(self, append: LineEntry) -> Deferred[Any]:
        self._held.append(append)
        self.roll()
        return append.result

    # Work without appends

    def run_alone(self, begin: Callable[[], Deferred[Result]]) -> Deferred[Result]:
        """Run work after the appends in line, while later ones wait; fires with its result.

        Fails with the partition's refusal if that comes before the work begins.
        """
        if self._state.refusal is not None:
            return fail(self._state.refusal)
        work = HeldWork(begin)
        self.works += 1
        work.result.addBoth(self._count_ended)
        if self.is_holding:
            self._held.append(work)
        else:
            self.is_holding = True
            self._begin_work(work)
        return work.result

    def _count_ended(self, outcome: Any) -> Any:
        self.works -= 1
        return outcome

    def _begin_work(self, work: HeldWork) -> None:
        self.is_alone = True
        maybeDeferred(work.begin).addBoth(self._end_work, work)

    def _end_work(self, outcome: Any, work: HeldWork) -> None:
        self.is_alone = False
        if self._state.refusal is None:
            self._drain()
        work.result.callback(outcome)

    # New segments

    def roll(self) -> None:
        """Start a new segment, unless one is being made; appends wait in line until it is in use."""
        if not self.is_holding and self._state.refusal is None:
            self.is_holding = True
            self._prepare_segment()

    def _prepare_segment(self) -> None:
        opened = self._state.log
        preparing = self._state.disk.run(opened.maintenance.prepare_segment, opened.log_end_offset)
        preparing.addCallback(self._use_segment).addErrback(self._roll_failed)

    def _use_segment(self, segment: Segment) -> None:
        state = self._state
        if state.refusal is not None:
            segment.unload()
            return
        sealed = state.log.maintenance.roll(segment)
        state.raise_high_watermark(state.high_watermark)
        state.disk.run(state.log.maintenance.seal, sealed).addErrback(state.report_disk_failure)
        self._drain()

    def _roll_failed(self, failure: Failure) -> None:
        """Refuse the appends in line; after a failure that is no KafkaError, a defect, the log counts as unusable."""
        self.is_holding = False
        if not isinstance(failure.value, KafkaError):
            self._state.log.take_offline(f"a new segment could not be made ({failure.value})")
        self.refuse(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "a new segment could not be made"))
        self._state.report_disk_failure(failure)

    def _drain(self) -> None:
        """Make the appends in line until one of them needs another segment."""
        outcomes: list[tuple[Deferred[Any], Any]] = []
        while self._held:
            first = self._held[0]
            if isinstance(first, HeldWork):
                break
            try:
                outcome = first.append()
            except RollNeededError:
                break
            except KafkaError as problem:
                outcome = problem
            if self._state.refusal is not None:
                break  # the directory failed: all appends in line were refused
            self._held.popleft()
            outcomes.append((first.result, outcome))
        # The line is in its final state before any Deferred fires: a callback may append again, and may start a segment
        # itself.
        self.is_holding = more = bool(self._held)
        for waiting, outcome in outcomes:
            fire_outcome(waiting, outcome)
        if more and self._state.refusal is None:
            self._continue()

    def _continue(self) -> None:
        """Begin what the first in line waits for: work without appends, or a new segment."""
        first = self._held[0]
        if isinstance(first, HeldWork):
            self._held.popleft()
            self._begin_work(first)
        else:
            self._prepare_segment()

    # Moving

    def pause(self) -> bool:
        """Hold appends until `resume`; return False while they wait for a segment already."""
        if self.is_holding or self._state.refusal is not None:
            return False
        self.is_holding = True
        return True

    def resume(self) -> None:
        """Make the appends in line."""
        self._drain()

    # Going away

    def refuse(self, refusal: KafkaError) -> None:
        """Fail every append in line."""
        held, self._held = self._held, deque()
        for append in held:
            if refusal.code is ErrorCode.KAFKA_STORAGE_ERROR:
                append.note_refused()
            append.result.errback(refusal)


def fire_outcome(waiting: Deferred[Any], outcome: Any) -> None:
    """Fire a Deferred with the outcome of its append."""
    if isinstance(outcome, KafkaError):
        waiting.errback(outcome)
    elif isinstance(outcome, Deferred):
        outcome.chainDeferred(waiting)
    else:
        waiting.callback(outcome)
