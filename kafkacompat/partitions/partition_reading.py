"""The reading side of a partition: what consumers may see of its log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from twisted.internet.defer import Deferred

from kafkacompat.partitions.partition_read import PartitionRead
from kafkacompat.storage.log.log import FoundRecord, Log, OffsetPosition
from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.lookup import ColdDataError
from kafkacompat.storage.segment.segment_file import FileRegion
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.disk import Disk
    from kafkacompat.partitions.group_commit import GroupCommit
    from kafkacompat.upkeep.free_space import FreeSpace

log = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Home(Protocol):
    """The log directory that a partition lives in."""

    commit: GroupCommit
    space: FreeSpace

    @property
    def disk(self) -> Disk:
        """What waits for it."""

    def failed(self, problem: BaseException) -> None:
        """The log can be used no more."""


class PartitionReading:
    """Reading and looking up below the high watermark."""

    def __init__(self, opened: Log, home: Home, leader_epoch: int) -> None:
        self.log = opened
        self.leader_epoch = leader_epoch
        self._examined = -1
        self.high_watermark: OffsetPosition = opened.end_position()
        self._live_in(home)

    def _live_in(self, home: Home) -> None:
        self._home = home
        self._space = home.space
        self.disk = home.disk
        self._waits_for_sync = home.commit.always

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed consumers may see: everything in front of it is decided."""
        return self._stable_place().offset

    def _stable_place(self) -> OffsetPosition:
        """See Log.stable_end, but nothing is looked up: a position of -1 may stand for one that only the disk knows."""
        first, end = self.log.state.producer_state.open.first, self.high_watermark
        if first is None or first.offset >= end.offset:
            return end
        start = self.log.state.log_start_offset
        return first if first.offset > start else OffsetPosition(start, -1, -1)

    def _check_failure(self, problem: BaseException) -> None:
        if self.log.offline:
            self._home.failed(problem)
        else:
            self._space.failed(problem)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest epoch <= *epoch*, where it ends, no further than consumers may see); (-1, -1) when it is not known."""
        found, end_offset = self.log.reader.offset_for_leader_epoch(epoch)
        return found, min(end_offset, self.high_watermark.offset)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Compare the epoch a client knows with ours; -1 stands for "did not say" (KIP-320).

        Raises KafkaError FENCED_LEADER_EPOCH for an older, UNKNOWN_LEADER_EPOCH for a newer one.
        """
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        older = current_leader_epoch < self.leader_epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise KafkaError(code, f"the leader epoch is {self.leader_epoch}, not {current_leader_epoch}")

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        at_least_one_batch: bool,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        committed: bool = False,
    ) -> PartitionRead:
        """Find what a consumer may see from *offset* on, as a region of a file; with *committed* only what is decided.

        Raises KafkaError OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH, and ColdDataError when
        the place is not in memory: `warm` brings it there. CORRUPT_MESSAGE where a batch is known to be damaged.
        """
        self.check_epoch(current_leader_epoch)
        if last_fetched_epoch >= 0:
            diverging = self._diverging(last_fetched_epoch, offset)
            if diverging is not None:
                return self._found(None, diverging)
        try:
            if committed:
                return self._read_committed(offset, max_bytes, at_least_one_batch)
            region = self.log.read(offset, max_bytes, self.high_watermark, at_least_one_batch, may_block=False)
        except CorruptDataError as problem:
            if problem.behind is None:
                raise ColdDataError from problem  # `warm` finds out how far the damage goes
            raise
        except KafkaError as problem:
            self._check_failure(problem)
            raise
        return self._found(region)

    def _read_committed(self, offset: int, max_bytes: int, at_least_one_batch: bool) -> PartitionRead:
        found = self.log.read_committed(offset, max_bytes, self.high_watermark, at_least_one_batch, may_block=False)
        return self._found(found.region, aborted=found.aborted)

    def nothing(self) -> PartitionRead:
        """What a fetch is told that gets no data."""
        return self._found(None)

    def _found(
        self,
        region: FileRegion | None,
        diverging: tuple[int, int] | None = None,
        aborted: Sequence[AbortedTransaction] = (),
    ) -> PartitionRead:
        end = self.high_watermark.offset
        stable = end if self.log.state.producer_state.open.first is None else self.last_stable_offset
        return PartitionRead(region, end, stable, self.log.state.log_start_offset, diverging, aborted)

    def _diverging(self, epoch: int, offset: int) -> tuple[int, int] | None:
        ours, end_offset = self.log.reader.offset_for_leader_epoch(epoch)
        if ours < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {epoch} is not known here any more")
        return (ours, end_offset) if ours < epoch or end_offset < offset else None

    def warm(self, offset: int, max_bytes: int = 0, *, committed: bool = False) -> Deferred[None]:
        """Bring into memory what reading so much from *offset* on takes."""
        if committed:
            return self._look_up(self.log.committed.warm, offset, max_bytes, self.high_watermark)
        return self._look_up(self.log.reader.warm, offset)

    def examine(self, offset: int) -> None:
        """Find out what is damaged where *offset* lies: somebody could not read the contents there."""
        if offset == self._examined:
            return  # once is enough: it was not the checksum
        self._examined = offset
        segments = self.log.segments
        examining = self.disk.run(self.log.examiner.examine, segments[max(0, segments.floor(offset))])
        examining.addErrback(lambda failure: log.error("%r: %s", self, failure.getErrorMessage()))

    def end_offset(self, *, committed: bool = False) -> int:
        """The end of what consumers may see; with *committed* of what is decided."""
        return self.last_stable_offset if committed else self.high_watermark.offset

    def find_timestamp(self, timestamp: int, *, committed: bool = False) -> Deferred[FoundRecord | None]:
        """The first record at or after a time (ms), unless consumers may not see it yet."""
        finding = self._look_up(self.log.reader.offset_for_timestamp, timestamp)
        return finding.addCallback(self._if_visible, committed)

    def find_max_timestamp(self, *, committed: bool = False) -> Deferred[FoundRecord | None]:
        """The record with the largest timestamp, unless consumers may not see it yet."""
        return self._look_up(self.log.reader.max_timestamp).addCallback(self._if_visible, committed)

    def _if_visible(self, found: FoundRecord | None, committed: bool) -> FoundRecord | None:
        return found if found is not None and found.offset < self.end_offset(committed=committed) else None

    def segment_starts(self, now_ms: int) -> list[tuple[int, int]]:
        """(offset, time in ms): see Log.segment_starts; in place of what consumers may not see yet, where they stop."""
        starts, end_offset = self.log.reader.segment_starts(now_ms), self.high_watermark.offset
        visible = [each for each in starts if each[0] < end_offset]
        return starts if starts[-1][0] <= end_offset else [*visible, (end_offset, now_ms)]

    def _look_up(
        self, search: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Deferred[Result]:
        return self.disk.run(search, *args, **kwargs).addErrback(self._look_up_failed)

    def _look_up_failed(self, failure: Failure) -> Failure:
        assert failure.value is not None
        self._check_failure(failure.value)
        return failure
