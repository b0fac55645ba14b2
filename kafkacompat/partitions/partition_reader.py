"""Reading one partition: what consumers may see of its log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn, ParamSpec, TypeVar

from twisted.internet.defer import Deferred

from kafkacompat.storage.log.log import FoundRecord
from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.partitions.partition_state import PartitionState

log = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class PartitionRead(NamedTuple):
    """The result of reading one partition.

    ``region`` is a piece of the log's file, or the bytes it was converted to for an old client. ``aborted`` are the
    aborted transactions that *region* may hold records of; empty unless only committed records are read.
    ``diverging_epoch`` is (epoch, end offset) where the fetcher's log and this one diverge (KIP-320).
    ``preferred_read_replica`` is the broker that the consumer should read from, -1 for this one (KIP-392).
    ``log_end_offset`` is set in reads of replicas only.
    """

    region: FileRegion | bytes | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: tuple[int, int] | None = None
    aborted: Sequence[AbortedTransaction] = ()
    preferred_read_replica: int = -1
    log_end_offset: int = -1

    @property
    def size_bytes(self) -> int:
        """Bytes of record batches in the region."""
        if self.region is None:
            return 0
        return len(self.region) if isinstance(self.region, bytes) else self.region.size_bytes


class PartitionReader:
    """Reads and look-ups: below the high watermark for consumers, up to the log's end for replicas."""

    __slots__ = ("_examined", "_state")

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._examined = -1

    def end_offset(self, *, committed: bool = False) -> int:
        """Return the end of what consumers may see: the high watermark, with *committed* the last stable offset."""
        state = self._state
        return state.stable_position().offset if committed else state.high_watermark.offset

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch <= *epoch* and its end offset; (-1, -1) for none.

        Without other replicas the end is at most the high watermark. With them it is the log's: after an election the
        high watermark may be behind offsets that consumers have read from the leader before.
        """
        state = self._state
        largest, end_offset = state.log.reader.offset_for_leader_epoch(epoch)
        return largest, end_offset if state.is_replicated else min(end_offset, state.high_watermark.offset)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Compare the leader epoch that a client knows, -1 for none, with the partition's (KIP-320).

        Raises KafkaError FENCED_LEADER_EPOCH for an older epoch, UNKNOWN_LEADER_EPOCH for a newer one.
        """
        leader_epoch = self._state.leader_epoch
        if current_leader_epoch in (-1, leader_epoch):
            return
        older = current_leader_epoch < leader_epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise KafkaError(code, f"the leader epoch is {leader_epoch}, not {current_leader_epoch}")

    def check_leads(self, current_leader_epoch: int) -> None:
        """Check the leader epoch as `check_epoch` does, and that this broker leads the partition.

        Raises KafkaError NOT_LEADER_OR_FOLLOWER too.
        """
        self.check_epoch(current_leader_epoch)
        if self._state.leading is None:
            raise self._state.not_leader()

    def check_offsets_available(self, now_ms: int) -> None:
        """Check that the high watermark has reached the start of the leader epoch (KIP-207), and that followers fetch.

        Raises KafkaError OFFSET_NOT_AVAILABLE. Until then a client could see the offsets of the partition go back. A leader
        that stood still, or was cut off, may have a successor with a higher high watermark.
        """
        leading, high_watermark = self._state.leading, self._state.high_watermark.offset
        if leading is None:
            return
        if leading.epoch_start_offset > high_watermark:
            detail = f"the high watermark {high_watermark} is behind the leader epoch's start"
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, detail)
        if leading.hears_no_follower(now_ms):
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, "no in-sync follower has fetched lately")

    def _check_follower_read(self, offset: int, from_follower: bool) -> None:
        """Check whether this follower may answer a consumer.

        A consumer can be ahead of a follower: then the follower has the offset soon. Above the follower's high
        watermark, but in its log, the consumer waits as it would at the leader.
        """
        state = self._state
        if not from_follower or state.leader_id < 0:
            raise state.not_leader()
        if offset > state.log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, f"offset {offset} has not reached this follower yet")

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        at_least_one_batch: bool,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        committed: bool = False,
        from_follower: bool = False,
    ) -> PartitionRead:
        """Return what a consumer may see from *offset* on, as a file region; with *committed* only what is stable.

        A broker that follows answers only with *from_follower* (KIP-392). Raises KafkaError NOT_LEADER_OR_FOLLOWER,
        OFFSET_NOT_AVAILABLE for an offset that a follower does not have yet, OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH,
        UNKNOWN_LEADER_EPOCH, or CORRUPT_MESSAGE for a batch that is known to be damaged; ColdDataError when finding the
        place would wait for the disk, until `warm` has loaded it.
        """
        self.check_epoch(current_leader_epoch)
        state = self._state
        if state.leading is None:
            self._check_follower_read(offset, from_follower)
        if last_fetched_epoch >= 0:
            diverging = self._diverging(last_fetched_epoch, offset)
            if diverging is not None:
                return self._result(None, diverging)
        try:
            if committed:
                return self._read_committed(offset, max_bytes, at_least_one_batch)
            region = state.log.read(offset, max_bytes, state.high_watermark, at_least_one_batch, may_block=False)
        except KafkaError as problem:
            self._fail(problem)
        return self._result(region)

    def _fail(self, problem: KafkaError) -> NoReturn:
        """Raise what a failed read raises; a failure of the log is reported to its directory."""
        if not isinstance(problem, CorruptDataError):
            self._state.report_failure(problem)
        elif problem.next_offset is None:
            raise ColdDataError from problem  # `warm` finds out how far the damage reaches
        raise problem

    def read_to_end(
        self, offset: int, max_bytes: int, *, at_least_one_batch: bool, last_fetched_epoch: int = -1
    ) -> PartitionRead:
        """Return what a replica may have from *offset* on: everything up to the log's end.

        Raises KafkaError and ColdDataError as `read` does.
        """
        state = self._state
        end_offset = state.log.log_end_offset
        if last_fetched_epoch >= 0:
            diverging = self._diverging(last_fetched_epoch, offset)
            if diverging is not None:
                return self._result(None, diverging)
        try:
            region = state.log.reader.read_for_follower(offset, max_bytes, at_least_one_batch, may_block=False)
        except KafkaError as problem:
            self._fail(problem)
        return self._result(region, log_end_offset=end_offset)

    def _read_committed(self, offset: int, max_bytes: int, at_least_one_batch: bool) -> PartitionRead:
        state = self._state
        read = state.log.read_committed(offset, max_bytes, state.high_watermark, at_least_one_batch, may_block=False)
        return self._result(read.region, aborted=read.aborted)

    def read_nothing(self) -> PartitionRead:
        """Return the partition's offsets without data."""
        return self._result(None)

    def _result(
        self,
        region: FileRegion | None,
        diverging: tuple[int, int] | None = None,
        aborted: Sequence[AbortedTransaction] = (),
        log_end_offset: int = -1,
    ) -> PartitionRead:
        state = self._state
        end = state.high_watermark.offset
        stable = end if state.log.state.producer_state.open.first is None else state.stable_position().offset
        return PartitionRead(
            region, end, stable, state.log.state.log_start_offset, diverging, aborted, log_end_offset=log_end_offset
        )

    def _diverging(self, epoch: int, offset: int) -> tuple[int, int] | None:
        if offset < self._state.log.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is before the log's start")
        ours, end_offset = self._state.log.reader.offset_for_leader_epoch(epoch)
        if ours < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the log no longer has leader epoch {epoch}")
        return (ours, end_offset) if ours < epoch or end_offset < offset else None

    def warm(self, offset: int, max_bytes: int = 0, *, committed: bool = False) -> Deferred[None]:
        """Load what a read of *max_bytes* from *offset* needs."""
        state = self._state
        if committed:
            return self._look_up(state.log.committed.warm, offset, max_bytes, state.high_watermark)
        return self._look_up(state.log.reader.warm, offset)

    def examine(self, offset: int) -> None:
        """Examine the segment that holds *offset* for damage: its contents could not be read there."""
        if offset == self._examined:
            return  # a second look finds nothing new: the checksum was right
        self._examined = offset
        segments = self._state.log.segments
        examining = self._state.disk.run(self._state.log.examiner.examine, segments[max(0, segments.find_slot(offset))])
        examining.addErrback(lambda failure: log.error("%r: %s", self._state, failure.value))

    def find_timestamp(self, timestamp: int, *, committed: bool = False) -> Deferred[FoundRecord | None]:
        """Find the first record at or after a timestamp (ms); None if consumers may not see it yet."""
        finding = self._look_up(self._state.log.reader.offset_for_timestamp, timestamp)
        return finding.addCallback(self._if_visible, committed)

    def find_max_timestamp(self, *, committed: bool = False) -> Deferred[FoundRecord | None]:
        """Find the record with the largest timestamp; None if consumers may not see it yet."""
        return self._look_up(self._state.log.reader.find_max_timestamp).addCallback(self._if_visible, committed)

    def _if_visible(self, record: FoundRecord | None, committed: bool) -> FoundRecord | None:
        return record if record is not None and record.offset < self.end_offset(committed=committed) else None

    def segment_starts(self, now_ms: int) -> list[tuple[int, int]]:
        """Return (offset, time in ms) of each segment as `LogReader.list_segment_starts` does, up to the high watermark."""
        starts, end_offset = self._state.log.reader.list_segment_starts(now_ms), self._state.high_watermark.offset
        visible = [start for start in starts if start[0] < end_offset]
        return starts if starts[-1][0] <= end_offset else [*visible, (end_offset, now_ms)]

    def _look_up(
        self, search: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Deferred[Result]:
        return self._state.disk.run(search, *args, **kwargs).addErrback(self._look_up_failed)

    def _look_up_failed(self, failure: Failure) -> Failure:
        assert failure.value is not None
        self._state.report_failure(failure.value)
        return failure
