"""One partition that this broker leads: its log, its high watermark, and who waits for it.

Appends take the short way (straight into the log, answered at once) unless the log must get a new
segment first. Then they wait in line while the disk thread makes the files: nobody overtakes, and the
reactor waits for no disk.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from twisted.internet.defer import Deferred, succeed

from kafkacompat.storage.log import AppendResult, Log, OffsetPosition
from kafkacompat.storage.segment import FileRegion, Segment
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.disk import Disk
    from kafkacompat.replication.delayed import DelayedFetch

log = logging.getLogger(__name__)

Appended: TypeAlias = "AppendResult | Deferred[AppendResult]"


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """What a fetch found in one partition.

    ``diverging_epoch`` is (epoch, end offset) when the fetcher's log and ours part ways (KIP-320).
    """

    region: FileRegion | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: tuple[int, int] | None = None

    @property
    def size_bytes(self) -> int:
        return self.region.size_bytes if self.region is not None else 0


@dataclass(slots=True)
class _HeldAppend:
    """An append in line behind a new segment."""

    records: Buffer
    now_ms: int
    from_client: bool
    result: Deferred[AppendResult]


class Partition:
    """The leader's side of one partition.

    The in-sync set is this broker alone, so the high watermark is the log's end; `_appended` is the one
    place where it moves.
    """

    def __init__(self, opened: Log, disk: Disk, leader_epoch: int, fail: Callable[[BaseException], None]) -> None:
        self.log = opened
        self.disk = disk
        self.leader_epoch = leader_epoch
        self.high_watermark: OffsetPosition = opened.end_position()
        self.watchers: dict[DelayedFetch[object], None] = {}
        self._fail = fail
        self._held: deque[_HeldAppend] = deque()
        self._deleted = False
        opened.leader_epochs.assign(leader_epoch, opened.log_end_offset)

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
        if self._held or self.log.needs_roll(len(records), now_ms):
            return self._append_later(records, now_ms, from_client)
        return self._append_now(records, now_ms, from_client)

    def _append_now(self, records: Buffer, now_ms: int, from_client: bool) -> Appended:
        result = self.log.append(
            records, leader_epoch=self.leader_epoch, now_ms=now_ms, from_client=from_client
        )
        if not result.duplicate:
            self._appended(len(records))
            if self.log.flush_is_due():
                return self.disk.run(self.log.flush).addCallback(lambda _: result)
        return result

    def _appended(self, size_bytes: int) -> None:
        self.high_watermark = self.log.end_position()
        if self.watchers:
            for fetch in list(self.watchers):
                fetch.arrived(size_bytes)

    def _append_later(self, records: Buffer, now_ms: int, from_client: bool) -> Deferred[AppendResult]:
        held = _HeldAppend(records, now_ms, from_client, Deferred())
        self._held.append(held)
        if len(self._held) == 1:
            self._start_roll()
        return held.result

    def roll(self) -> None:
        """Start a new segment for a reason of time; does nothing while one is under way."""
        if not self._held and not self._deleted:
            self._held.append(_HeldAppend(b"", 0, False, Deferred()))
            self._start_roll()

    def _start_roll(self) -> None:
        rolling = self.disk.run(self.log.prepare_segment, self.log.log_end_offset)
        rolling.addCallbacks(self._rolled, self._roll_failed)

    def _rolled(self, segment: Segment) -> None:
        if self._deleted:
            self._roll_failed(None)
            return
        sealed = self.log.roll(segment)
        self.disk.run(self.log.seal, sealed).addErrback(lambda failure: self._fail(failure.value))
        self._drain()

    def _drain(self) -> None:
        """Serve those in line until the next of them needs a new segment of its own."""
        held = self._held
        while held:
            if held[0].records and self.log.needs_roll(len(held[0].records), held[0].now_ms):
                self._start_roll()
                return
            self._serve(held.popleft())

    def _serve(self, held: _HeldAppend) -> None:
        if not held.records:
            return
        try:
            result = self._append_now(held.records, held.now_ms, held.from_client)
        except KafkaError as problem:
            held.result.errback(problem)
        else:
            (result if isinstance(result, Deferred) else succeed(result)).chainDeferred(held.result)

    def _roll_failed(self, failure: Failure | None) -> None:
        held, self._held = self._held, deque()
        problem = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "a new segment could not be made")
        for append in held:
            if append.records:
                append.result.errback(problem)
        if failure is not None:
            self._fail(failure.value)  # type: ignore[arg-type]

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

        Raises KafkaError OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.
        """
        self.check_epoch(current_leader_epoch)
        high_watermark = self.high_watermark
        if last_fetched_epoch >= 0:
            diverging = self._diverging(last_fetched_epoch, offset)
            if diverging is not None:
                return self._found(None, diverging)
        if offset == high_watermark.offset:
            return self._found(None)
        region = self.log.read(offset, max_bytes, high_watermark, at_least_one_batch)
        return self._found(region)

    def _found(self, region: FileRegion | None, diverging: tuple[int, int] | None = None) -> PartitionRead:
        end = self.high_watermark.offset
        return PartitionRead(region, end, end, self.log.log_start_offset, diverging)

    def _diverging(self, epoch: int, offset: int) -> tuple[int, int] | None:
        ours, end_offset = self.log.offset_for_leader_epoch(epoch)
        if ours < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {epoch} is not known here any more")
        return (ours, end_offset) if ours < epoch or end_offset < offset else None

    # Going away

    def close_to_clients(self, problem: KafkaError) -> None:
        """Refuse what waits, because the partition is deleted or its log directory failed."""
        self._deleted = True
        held, self._held = self._held, deque()
        for append in held:
            if append.records:
                append.result.errback(problem)
        for fetch in list(self.watchers):
            fetch.wake()
