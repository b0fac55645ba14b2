"""The follower's side of one partition: appending what was fetched, truncating, and following the high watermark.

A follower appends the leader's batches as they are. Consumers may read them up to the high watermark, which is the
leader's as far as the follower's log reaches (KIP-392). Nothing here knows the leader or the network: a fetcher calls it,
and waits for one call to end before the next.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.partitions.fetch_watchers import measure_distance
from kafkacompat.partitions.free_space import STEP_BYTES
from kafkacompat.storage.log.fetched_batches import check_fetched_batches, read_first_offsets
from kafkacompat.storage.log.log import FetchedAppend, Log, OffsetPosition
from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.partitions.append_queue import AppendQueue
    from kafkacompat.partitions.fetch_watchers import FetchWatchers
    from kafkacompat.partitions.partition_state import PartitionHost, PartitionState

Followed: TypeAlias = "FetchedAppend | Deferred[FetchedAppend]"


@dataclass(slots=True)
class FetchedEntry:
    """Fetched batches that are appended now or in line, in parts if a segment ends within them."""

    follower: FollowerPartition
    records: memoryview
    now_ms: int
    appended: FetchedAppend | None = None
    result: Deferred[FetchedAppend] = field(default_factory=Deferred)

    def append(self) -> Followed:
        """See LineEntry.append."""
        return self.follower.append_rest(self)

    def note_refused(self) -> None:
        """See LineEntry.note_refused; the leader still has the batches."""


class _Unsynced(NamedTuple):
    appended: FetchedAppend
    answer: Deferred[FetchedAppend]


class FollowerPartition:
    """A partition's log as a follower uses it. The appends are in one line with those that this broker made as leader.

    ``PartitionState.leader_epoch`` is the epoch of the leader that is fetched from; later epochs are not accepted.
    """

    __slots__ = (
        "_is_locating",
        "_leader_high_watermark",
        "_leader_log_start_offset",
        "_queue",
        "_state",
        "_truncations",
        "_unsynced",
        "_watchers",
    )

    def __init__(self, state: PartitionState, watchers: FetchWatchers, queue: AppendQueue) -> None:
        self._state = state
        self._watchers = watchers
        self._queue = queue
        self._leader_high_watermark = self._leader_log_start_offset = -1
        self._is_locating = False
        self._truncations = 0
        self._unsynced: deque[_Unsynced] = deque()

    # --- what the log holds ---

    @property
    def log(self) -> Log:
        """The partition's log, for its group commit."""
        return self._state.log

    @property
    def log_end_offset(self) -> int:
        """The offset to fetch from."""
        return self._state.log.log_end_offset

    @property
    def reported_end_offset(self) -> int:
        """The end that the leader may count on: where appends count once they are synced, the end of what is on the disk.

        A Fetch from an offset tells the leader that everything before it is here, so it waits until both ends are equal,
        as the result of `append_fetched` does.
        """
        opened = self._state.log
        return opened.recovery_point if self._state.host.commit.always else opened.log_end_offset

    @property
    def lag(self) -> int:
        """How many offsets this log lacks of what consumers may read at the leader, by its last response."""
        return max(0, self._leader_high_watermark - self._state.log.log_end_offset)

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last batch, for Fetch's last fetched epoch; -1 if none is known."""
        return self._state.log.leader_epochs.latest

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (largest epoch <= *epoch*, its end offset in this log); (-1, -1) if it is unknown (KIP-101, KIP-279)."""
        return self._state.log.reader.offset_for_leader_epoch(epoch)

    # --- appending ---

    def append_fetched(
        self, records: Buffer, leader_high_watermark: int, leader_log_start_offset: int, now_ms: int
    ) -> Followed:
        """Append the batches of a Fetch response's partition, and take over the leader's offsets.

        *records* may be empty, and their last batch cut off; they must not change until the result is there. The result
        counts what was appended. A Deferred fires once a new segment is in use, or the batches are on the disk where
        appends count only then.

        Raises KafkaError, or fails with it: CORRUPT_MESSAGE, UNSUPPORTED_FOR_MESSAGE_FORMAT or INVALID_RECORD for batches
        that cannot follow the log, which is unchanged then; KAFKA_STORAGE_ERROR if the disk is full or fails.
        """
        state = self._state
        if state.refusal is not None:
            raise state.refusal
        if len(records):
            state.host.space.reserve(len(records))
        base_offset = self._find_earlier_beginning(records)
        if base_offset is not None:
            # The leader's log begins inside this batch, by DeleteRecords, and an empty log can still hold all of it.
            restarted = self.start_over_at(base_offset)
            return restarted.addCallback(
                lambda _: self._append(records, leader_high_watermark, leader_log_start_offset, now_ms)
            )
        return self._append(records, leader_high_watermark, leader_log_start_offset, now_ms)

    def _append(
        self, records: Buffer, leader_high_watermark: int, leader_log_start_offset: int, now_ms: int
    ) -> Followed:
        self._leader_high_watermark = leader_high_watermark
        self._leader_log_start_offset = leader_log_start_offset
        outcome: Followed = self._queue.append_entry(FetchedEntry(self, memoryview(records), now_ms))
        return outcome

    def _find_earlier_beginning(self, records: Buffer) -> int | None:
        """Return the base offset of a sound first batch that begins before the end of an empty log and reaches past it."""
        opened = self._state.log
        end_offset = opened.log_end_offset
        if opened.log_start_offset != end_offset:
            return None
        offsets = read_first_offsets(records)
        if offsets is None or not 0 <= offsets[0] < end_offset <= offsets[1]:
            return None
        check_fetched_batches(records, next_offset=offsets[0], oldest_epoch=-1, newest_epoch=self._state.leader_epoch)
        return offsets[0]

    def append_rest(self, entry: FetchedEntry) -> Followed:
        """Append what is left of an entry. Raises RollNeededError when that needs a new segment, and KafkaError."""
        state = self._state
        try:
            while True:
                part = state.log.append_fetched(entry.records, leader_epoch=state.leader_epoch, now_ms=entry.now_ms)
                entry.appended = part if entry.appended is None else entry.appended.followed_by(part)
                entry.records = entry.records[part.size_bytes :]
                if not (part.batch_count and entry.records):
                    break
        except KafkaError as problem:
            state.report_failure(problem)
            raise
        finally:
            state.count_bytes()
        appended = entry.appended
        if appended.batch_count and self._needs_sync(appended.end):
            waiting = _Unsynced(appended, Deferred())
            self._unsynced.append(waiting)
            state.host.commit.join(self)
            return waiting.answer
        self._follow()
        return appended

    def _needs_sync(self, end: OffsetPosition) -> bool:
        opened = self._state.log
        unsynced = end.offset - opened.recovery_point
        return self._state.host.commit.always or unsynced >= opened.config.flush_messages

    def synced(self, end: OffsetPosition) -> None:
        """Note that everything before *end* is on the disk: see SyncedPartition."""
        done: list[_Unsynced] = []
        while self._unsynced and self._unsynced[0].appended.end.offset <= end.offset:
            done.append(self._unsynced.popleft())
        self._follow()
        for waiting in done:
            waiting.answer.callback(waiting.appended)

    def refuse(self, refusal: KafkaError) -> None:
        """Fail the appends that wait for a sync, and leave the group commit."""
        self._state.host.commit.leave(self)
        unsynced, self._unsynced = self._unsynced, deque()
        for waiting in unsynced:
            waiting.answer.errback(refusal)

    # --- the high watermark and the log start offset ---

    def _follow(self) -> None:
        """Move the high watermark up to the leader's, as far as the log reaches, and the log start offset to the leader's."""
        state = self._state
        if self._queue.is_alone:
            return  # the log is being cut; the next Fetch response comes here again
        target = min(self._leader_high_watermark, self.reported_end_offset)
        if target > state.high_watermark.offset and not self._is_locating:
            try:
                position = state.log.reader.find_position(target, may_block=False)
                if position.offset > state.high_watermark.offset:
                    self._raise_high_watermark(position)
            except ColdDataError:
                self._locate(target)
            except KafkaError as problem:
                state.report_failure(problem)
                self._locate(target)
        self._advance_log_start_offset()

    def _locate(self, offset: int) -> None:
        """Find the place of a new high watermark on the disk thread."""
        state, truncations = self._state, self._truncations
        opened = state.log
        self._is_locating = True

        def located(position: OffsetPosition) -> None:
            self._is_locating = False
            if truncations == self._truncations and opened is state.log and state.refusal is None:
                if position.offset > state.high_watermark.offset:
                    self._raise_high_watermark(position)
                self._advance_log_start_offset()

        def not_located(failure: Failure) -> None:
            self._is_locating = False
            state.report_disk_failure(failure)

        state.disk.run(opened.reader.locate, offset).addCallbacks(located, not_located)

    def _raise_high_watermark(self, position: OffsetPosition) -> None:
        state, watchers = self._state, self._watchers
        before = state.high_watermark
        state.raise_high_watermark(position)
        if watchers.read_uncommitted or watchers.read_committed:
            watchers.notify(measure_distance(before, state.high_watermark))

    def _advance_log_start_offset(self) -> None:
        opened = self._state.log
        offset = min(self._leader_log_start_offset, self._state.high_watermark.offset)
        if offset > opened.log_start_offset:
            opened.trimmer.advance_log_start_offset(offset)

    # --- truncating ---

    def truncate(self, offset: int) -> Deferred[None]:
        """Drop every batch that holds *offset* or a later one; fires when that is on the disk, with its checkpoints.

        The log may end before *offset*, at the beginning of a batch that holds it. The high watermark falls to the log's
        end if it is later. Appends that are waiting come first, and later appends wait. Fails with KafkaError
        KAFKA_STORAGE_ERROR; if the directory is full, nothing has changed, and the caller may try again.
        """
        return self._queue.run_alone(lambda: self._cut(offset, _truncate, offset))

    def start_over_at(self, offset: int) -> Deferred[None]:
        """Drop everything and let the log begin at *offset*; otherwise as `truncate`.

        A follower does so if the leader's log begins after this one's end, or ends before this one begins.
        """
        return self._queue.run_alone(lambda: self._cut(-1, _start_over, offset))

    def _cut(self, kept_below: int, cut: Callable[[Log, int, int], None], offset: int) -> Deferred[None]:
        state = self._state
        if state.host.space.is_full:
            raise state.host.space.build_full_error()
        self._truncations += 1
        # The next leader may know of less.
        self._leader_high_watermark = self._leader_log_start_offset = -1
        self.refuse(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{state!r} was truncated before its sync"))
        before = state.high_watermark
        high_watermark = before.offset
        if kept_below < high_watermark:
            # Nothing can be read while the disk thread cuts what consumers may see.
            opened = state.log
            state.high_watermark = OffsetPosition(opened.log_start_offset, opened.segments[0].base_offset, 0)
        cutting = state.disk.run(_cut_and_save, state.log, state.host, cut, offset, high_watermark)
        return cutting.addCallbacks(self._was_cut, self._cut_failed, errbackArgs=(before,))

    def _was_cut(self, high_watermark: OffsetPosition) -> None:
        state = self._state
        state.high_watermark = high_watermark
        state.count_bytes()
        state.settle_transactions()
        self._watchers.wake()

    def _cut_failed(self, failure: Failure, before: OffsetPosition) -> NoReturn:
        """Report a failed truncation. The log cannot be used any more, unless there was no room to begin."""
        if isinstance(failure.value, _NoRoomError):
            self._state.high_watermark = before
            self._state.host.space.note_failed_write(failure.value)
            raise self._state.host.space.build_full_error() from failure.value
        self._state.log.take_offline(f"it could not be truncated ({failure.value})")
        self._state.report_disk_failure(failure)
        raise self._state.log.state.offline_error()


class _NoRoomError(OSError):
    """A truncation was not begun, because its checkpoints may not find room on the disk."""


def _truncate(opened: Log, offset: int, high_watermark: int) -> None:
    opened.trimmer.truncate_to(offset, high_watermark=high_watermark)


def _start_over(opened: Log, offset: int, _high_watermark: int) -> None:
    opened.trimmer.start_over_at(offset)


def _cut_and_save(
    opened: Log, host: PartitionHost, cut: Callable[[Log, int, int], None], offset: int, high_watermark: int
) -> OffsetPosition:
    """Cut the log and write its checkpoints; returns the high watermark. [disk]

    Raises _NoRoomError before anything has changed: a log that was cut, and has no checkpoints, cannot be used.
    """
    free_bytes = opened.state.files.disk_usage(opened.state.directory).free_bytes
    if free_bytes < STEP_BYTES:
        raise _NoRoomError(errno.ENOSPC, f"{free_bytes} bytes are free")
    cut(opened, offset, high_watermark)
    position = opened.reader.locate(max(high_watermark, opened.log_start_offset))
    host.save_truncation(opened, position.offset)
    return position
