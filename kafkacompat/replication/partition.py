"""One partition that this broker leads: its log, its high watermark, and who waits for it.

Appends take the short way (straight into the log, answered at once) unless the log must get a new
segment first. Then they wait in line while the disk thread makes the files: nobody overtakes, and the
reactor waits for no disk.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from twisted.internet.defer import Deferred

from kafkacompat.metadata.topic_names import INTERNAL_TOPICS
from kafkacompat.replication.held_appends import Appended, HeldAppend, settle
from kafkacompat.replication.partition_read import PartitionRead
from kafkacompat.storage.log import AppendResult, FoundRecord, Log, OffsetPosition, RollNeededError
from kafkacompat.storage.segment import Segment
from kafkacompat.storage.segment_file import FileRegion
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.disk import Disk
    from kafkacompat.replication.delayed import Waiting

log = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Partition:
    """The leader's side of one partition.

    ``on_failure`` is told when the log can be used no more. The in-sync set is this broker alone, so the
    high watermark is the log's end; `_append_now` is the one place where it moves.
    """

    def __init__(self, opened: Log, disk: Disk, leader_epoch: int, on_failure: Callable[[BaseException], None]) -> None:
        self.log = opened
        self.disk = disk
        self.leader_epoch = leader_epoch
        self.high_watermark: OffsetPosition = opened.end_position()
        self.watchers: dict[Waiting, None] = {}
        self.is_internal = opened.topic in INTERNAL_TOPICS
        self._on_failure = on_failure
        self._held: deque[HeldAppend] = deque()
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

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed consumers may see: without transactions the high watermark."""
        return self.high_watermark.offset

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Compare the epoch a client knows with ours; -1 stands for "did not say" (KIP-320).

        Raises KafkaError FENCED_LEADER_EPOCH for an older, UNKNOWN_LEADER_EPOCH for a newer one.
        """
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        older = current_leader_epoch < self.leader_epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise KafkaError(code, f"the leader epoch is {self.leader_epoch}, not {current_leader_epoch}")

    # Appending

    def append(self, records: Buffer, now_ms: int, *, from_client: bool = True) -> Appended:
        """Append one batch as leader, now if possible.

        Raises KafkaError for a batch that is refused at once; a later refusal fails the Deferred.
        """
        if not self._rolling:
            try:
                return self._append_now(records, now_ms, from_client)
            except RollNeededError:
                pass
        held = HeldAppend(records, now_ms, from_client, Deferred())
        self._held.append(held)
        self.roll()
        return held.result

    def _append_now(self, records: Buffer, now_ms: int, from_client: bool) -> Appended:
        try:
            result = self.log.append(records, leader_epoch=self.leader_epoch, now_ms=now_ms, from_client=from_client)
        except KafkaError as problem:
            self._check_failure(problem)
            raise
        self.high_watermark = result.end
        if self.watchers:
            for fetch in list(self.watchers):
                fetch.arrived(len(records))
        if result.end.offset - self.log.recovery_point >= self.log.config.flush_messages:
            return self.flush().addCallback(lambda _: result)
        return result

    def _check_failure(self, problem: BaseException) -> None:
        if self.log.offline:
            self._on_failure(problem)

    def disk_failed(self, failure: Failure) -> None:
        """An operation of the disk thread failed; if the log can be used no more, its directory goes offline."""
        assert failure.value is not None
        if self._closed is None:
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
        preparing = self.disk.run(self.log.prepare_segment, self.log.log_end_offset)
        preparing.addCallback(self._rolled).addErrback(self._roll_failed)

    def _rolled(self, segment: Segment) -> None:
        if self.closed:
            segment.unload()
            return
        sealed = self.log.roll(segment)
        # With its position: what was the end of the old segment is the beginning of the new one.
        self.high_watermark = self.log.end_position()
        self.disk.run(self.log.seal, sealed).addErrback(self.disk_failed)
        self._drain()

    def _drain(self) -> None:
        """Serve those in line until one of them needs a new segment of its own.

        They learn of it only when the line is as it shall be: their next appends come from within the call.
        """
        settled: list[tuple[Deferred[AppendResult], Appended | KafkaError]] = []
        held = self._held
        while held:
            first = held[0]
            outcome: Appended | KafkaError
            try:
                outcome = self._append_now(first.records, first.now_ms, first.from_client)
            except RollNeededError:
                break
            except KafkaError as problem:
                outcome = problem
            held.popleft()
            settled.append((first.result, outcome))
        # Decided before anybody learns anything: an append from within those calls may start a segment itself.
        self._rolling = more = bool(held)
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

    def replace_log(self, moved: Log, disk: Disk, on_failure: Callable[[BaseException], None]) -> None:
        """Go on with a copy of the log that holds the same; appends are paused."""
        moved.config = self.log.config
        moved.advance_log_start_offset(self.log.log_start_offset)
        self.log, self.disk, self._on_failure = moved, disk, on_failure
        self.high_watermark = moved.end_position()

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
            append.result.errback(refusal)

    # Housekeeping

    def flush(self) -> Deferred[None]:
        """Put everything appended so far on the disk."""
        return self.disk.run(self.log.flush).addCallbacks(lambda _: None, self._flush_failed)

    def _flush_failed(self, failure: Failure) -> Failure:
        self.disk_failed(failure)
        return failure

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that have been idle for long; not while the disk thread writes them down."""
        if not self._rolling:
            self.log.producer_state.remove_expired(now_ms, self.log.config.producer_id_expiration_ms)

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        at_least_one_batch: bool,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
    ) -> PartitionRead:
        """Find what a consumer may see from *offset* on, as a region of a file.

        Raises KafkaError OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH, and ColdDataError when
        the place is not in memory: `warm` brings it there.
        """
        self.check_epoch(current_leader_epoch)
        if last_fetched_epoch >= 0:
            diverging = self._diverging(last_fetched_epoch, offset)
            if diverging is not None:
                return self._found(None, diverging)
        try:
            region = self.log.read(offset, max_bytes, self.high_watermark, at_least_one_batch, may_block=False)
        except KafkaError as problem:
            self._check_failure(problem)
            raise
        return self._found(region)

    def nothing(self) -> PartitionRead:
        """What a fetch is told that gets no data."""
        return self._found(None)

    def _found(self, region: FileRegion | None, diverging: tuple[int, int] | None = None) -> PartitionRead:
        end = self.high_watermark.offset
        return PartitionRead(region, end, end, self.log.log_start_offset, diverging)

    def _diverging(self, epoch: int, offset: int) -> tuple[int, int] | None:
        ours, end_offset = self.log.offset_for_leader_epoch(epoch)
        if ours < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {epoch} is not known here any more")
        return (ours, end_offset) if ours < epoch or end_offset < offset else None

    def warm(self, offset: int) -> Deferred[None]:
        """Bring into memory what finding *offset* takes."""
        return self._look_up(self.log.warm, offset)

    def find_timestamp(self, timestamp: int) -> Deferred[FoundRecord | None]:
        """The first record at or after a time (ms)."""
        return self._look_up(self.log.offset_for_timestamp, timestamp)

    def find_max_timestamp(self) -> Deferred[FoundRecord | None]:
        """The record with the largest timestamp."""
        return self._look_up(self.log.max_timestamp)

    def _look_up(
        self, search: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Deferred[Result]:
        return self.disk.run(search, *args, **kwargs).addErrback(self._look_up_failed)

    def _look_up_failed(self, failure: Failure) -> Failure:
        assert failure.value is not None
        self._check_failure(failure.value)
        return failure

    # Going away

    def close_to_clients(self, refusal: KafkaError) -> None:
        """Refuse what waits, because the partition is deleted or its log directory failed."""
        self._closed = refusal
        self._refuse_held(refusal)
        for fetch in list(self.watchers):
            fetch.wake()
