"""One partition that this broker leads: its log, its high watermark, and who waits for it.

Appends take the short way (straight into the log, answered at once) unless the log must get a new
segment first. Then they wait in line while the disk thread makes the files: nobody overtakes, and the
reactor waits for no disk.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.metadata.topic_names import INTERNAL_TOPICS
from kafkacompat.partitions.held_appends import Appended, HeldAppend, note_refused, settle
from kafkacompat.partitions.partition_reading import Home
from kafkacompat.partitions.partition_watching import PartitionWatching
from kafkacompat.partitions.unsynced import Unsynced
from kafkacompat.storage.intake.validation import CheckedBatch
from kafkacompat.storage.log.log import AppendResult, Log, OffsetPosition, RollNeededError
from kafkacompat.storage.producers.transaction_marker import MARKER_BYTES, Marker
from kafkacompat.storage.producers.verification import Guard
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer

if TYPE_CHECKING:
    from twisted.python.failure import Failure

log = logging.getLogger(__name__)


class Partition(PartitionWatching):
    """The leader's side of one partition.

    The in-sync set is this broker alone, so the high watermark is the log's end, or how far it is on the disk where
    appends wait for that: it moves in `_append_now` and in `synced`.
    """

    def __init__(self, opened: Log, home: Home, leader_epoch: int) -> None:
        super().__init__(opened, home, leader_epoch)
        self.is_internal = opened.topic in INTERNAL_TOPICS
        self._held: deque[HeldAppend] = deque()
        self._unsynced = Unsynced()
        self._rolling = False
        self._closed: KafkaError | None = None
        # Clients are told the new epoch from now on, so it has to have a beginning before its first record.
        opened.leader_epochs.assign(leader_epoch, opened.log_end_offset)

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.index})"

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.log.topic

    @property
    def index(self) -> int:
        """The partition's number in its topic."""
        return self.log.partition

    # Appending

    def append(
        self,
        records: Buffer | CheckedBatch,
        now_ms: int,
        *,
        from_client: bool = True,
        guard: Guard | None = None,
    ) -> Appended:
        """Append one batch as leader, now if possible. One that is not checked yet is to be one that does not take long.

        One that begins a transaction comes with its `guard`. Raises KafkaError for a batch that is refused at once; a later
        refusal fails the Deferred.
        """
        if from_client:
            self._take_room(records)
        return self._append(records, now_ms, from_client, guard)

    def _take_room(self, records: Buffer | CheckedBatch) -> None:
        try:
            self._space.take(len(records))
        except KafkaError:
            note_refused(self.log, records)
            raise

    def append_marker(self, marker: Marker, now_ms: int) -> Appended:
        """Append the end of a transaction, behind what is in line.

        Raises, or fails with, KafkaError INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED or KAFKA_STORAGE_ERROR.
        """
        return self._append(marker, now_ms, False, None)

    def guard(self, producer_id: int, epoch: int, sequence: int, *, begins_at_zero: bool) -> Guard | None:
        """What a transactional batch has to come with, once the coordinator has vouched for its transaction (KIP-890).

        None when its transaction is open here already. ``begins_at_zero``: the producer's client has a new epoch for each
        transaction. Raises KafkaError INVALID_PRODUCER_EPOCH.
        """
        return self.log.producer_state.guard(producer_id, epoch, sequence, begins_at_zero)

    def _append(
        self, what: Buffer | CheckedBatch | Marker, now_ms: int, from_client: bool, guard: Guard | None
    ) -> Appended:
        if not self._rolling:
            try:
                return self._append_now(what, now_ms, from_client, guard)
            except RollNeededError:
                pass
        held = HeldAppend(what, now_ms, from_client, guard)
        self._held.append(held)
        self.roll()
        return held.result

    @property
    def is_in_line(self) -> bool:
        """Whether appends wait in line; what waits otherwise has its place in the log and is only to be synced."""
        return self._rolling

    @property
    def waits_long(self) -> bool:
        """Whether the disk that appends wait for has been busy for longer than usual."""
        return self._home.commit.is_slow

    def _append_now(
        self, what: Buffer | CheckedBatch | Marker, now_ms: int, from_client: bool, guard: Guard | None
    ) -> Appended:
        try:
            if is_marker := isinstance(what, Marker):
                size_bytes = MARKER_BYTES
                result = self.log.append_marker(what, leader_epoch=self.leader_epoch, now_ms=now_ms)
            else:
                size_bytes = len(what)
                result = self.log.append(
                    what, leader_epoch=self.leader_epoch, now_ms=now_ms, from_client=from_client, guard=guard
                )
        except KafkaError as problem:
            if problem.code is ErrorCode.KAFKA_STORAGE_ERROR:
                note_refused(self.log, what)
            self._check_failure(problem)
            raise
        if (
            self._waits_for_sync
            or result.end.offset - self.log.state.recovery_point >= self.log.state.config.flush_messages
        ):
            return self._after_sync(result, size_bytes)
        self.high_watermark = result.end
        if is_marker:
            self._settle()
        if self.watchers or self.stable_watchers:
            self._tell_watchers(size_bytes)
        return result

    def _settle(self) -> None:
        """Transactions whose markers consumers may see are open no longer."""
        self.log.producer_state.open.settle(self.high_watermark.offset)

    def _after_sync(self, result: AppendResult, size_bytes: int) -> Appended:
        """Let a batch wait for the next round; so must all behind it, for the high watermark waits too."""
        # Behind a start, or flush.messages that were more before, what consumers see need not be on the disk.
        if result.duplicate and result.last_offset < min(self.high_watermark.offset, self.log.recovery_point):
            return result
        self._waits_for_sync = True
        self._home.commit.join(self)
        return self._unsynced.add(result, 0 if result.duplicate else size_bytes)

    def synced(self, end: OffsetPosition) -> None:
        """Everything before *end* is on the disk: consumers may see it, and who waits for it is answered."""
        self._raise_high_watermark(end)
        done = self._unsynced.take(end.offset)
        self._waits_for_sync = self._home.commit.always or bool(self._unsynced)
        if done:
            self._tell_watchers(sum(each.size_bytes for each in done))
        for each in done:
            each.answer.callback(each.result)

    def _raise_high_watermark(self, end: OffsetPosition) -> None:
        if end.offset >= self.high_watermark.offset:
            active = self.log.segments.active
            # Where one segment ends the next begins: it is named by the one that is going to be read.
            at_start = end.offset == active.base_offset
            self.high_watermark = OffsetPosition(end.offset, active.base_offset, 0) if at_start else end
            self._settle()

    def disk_failed(self, failure: Failure) -> None:
        """An operation of the disk thread failed; if the log can be used no more, its directory goes offline."""
        assert failure.value is not None
        if self._closed is None:
            if not self._space.is_full:
                log.error("%r: %s", self, failure.getErrorMessage())
            self._check_failure(failure.value)

    @property
    def closed(self) -> bool:
        """Whether it was deleted or its directory failed."""
        return self._closed is not None

    def roll(self) -> None:
        """Start a new segment, unless one is being made; appends wait in line until it is there."""
        if not self._rolling and not self.closed:
            self._rolling = True
            self._prepare()

    def _prepare(self) -> None:
        preparing = self.disk.run(self.log.maintenance.prepare_segment, self.log.log_end_offset)
        preparing.addCallback(self._rolled).addErrback(self._roll_failed)

    def _rolled(self, segment: Segment) -> None:
        if self.closed:
            segment.unload()
            return
        sealed = self.log.maintenance.roll(segment)
        self._raise_high_watermark(self.high_watermark)
        self.disk.run(self.log.maintenance.seal, sealed).addErrback(self.disk_failed)
        self._drain()

    def _drain(self) -> None:
        """Serve those in line until one of them needs a new segment of its own.

        They learn of it only when the line is as it shall be: their next appends come from within the call.
        """
        settled: list[tuple[Deferred[AppendResult], Appended | KafkaError]] = []
        while self._held:
            first = self._held[0]
            outcome: Appended | KafkaError
            try:
                outcome = self._append_now(first.what, first.now_ms, first.from_client, first.guard)
            except RollNeededError:
                break
            except KafkaError as problem:
                outcome = problem
            if self.closed:
                break  # the directory failed: all in line have been refused
            self._held.popleft()
            settled.append((first.result, outcome))
        # Decided before anybody learns anything: an append from within those calls may start a segment itself.
        self._rolling = more = bool(self._held)
        for waiting, outcome in settled:
            settle(waiting, outcome)
        if more and not self.closed:
            self._prepare()

    # Moving

    def pause(self) -> bool:
        """Let appends wait in line until `resume`; False while they wait for a segment already."""
        if self._rolling or self.closed:
            return False
        self._rolling = True
        return True

    def replace_log(self, moved: Log, home: Home) -> None:
        """Go on with a copy of the log that holds the same, on another disk; appends are paused."""
        moved.config = self.log.config
        moved.trimmer.advance_log_start_offset(self.log.log_start_offset)
        self._home.commit.leave(self)
        self.log = moved
        self._live_in(home)
        self.synced(moved.end_position())

    def resume(self) -> None:
        """Serve those in line."""
        self._drain()

    def _roll_failed(self, failure: Failure) -> None:
        """The segment could not be made, or (a defect of ours) not be taken into use: nothing is known any more."""
        self._rolling = False
        if not isinstance(failure.value, KafkaError):
            self.log.offline = True
        self._refuse_held(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "a new segment could not be made"))
        self.disk_failed(failure)

    def _refuse_held(self, refusal: KafkaError) -> None:
        held, self._held = self._held, deque()
        for append in held:
            note_refused(self.log, append.what)
            append.result.errback(refusal)

    # Housekeeping

    def flush(self) -> Deferred[None]:
        """Put everything appended so far on the disk."""
        return self.disk.run(self.log.flush).addCallbacks(lambda _: None, self._flush_failed)

    def _flush_failed(self, failure: Failure) -> Failure:
        self.disk_failed(failure)
        return failure

    # Going away

    def close_to_clients(self, refusal: KafkaError) -> None:
        """Refuse what waits, because the partition is deleted or its log directory failed."""
        self._closed = refusal
        self._home.commit.leave(self)
        self._unsynced.refuse(refusal)
        self._refuse_held(refusal)
        self.wake_fetches()
