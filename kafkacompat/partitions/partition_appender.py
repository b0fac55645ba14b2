"""Appending to one partition's log as its leader, and moving the high watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.partitions.unsynced_appends import UnsyncedAppends
from kafkacompat.storage.intake.validation import CheckedBatch
from kafkacompat.storage.log.log import AppendResult, Log, OffsetPosition
from kafkacompat.storage.producers.transaction_marker import MARKER_BYTES, Marker
from kafkacompat.storage.producers.verification import Guard
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer

if TYPE_CHECKING:
    from kafkacompat.partitions.fetch_watchers import FetchWatchers
    from kafkacompat.partitions.partition_state import PartitionState
    from kafkacompat.partitions.replica_progress import ReplicaProgress

Appended: TypeAlias = "AppendResult | Deferred[AppendResult]"


class PartitionAppender:
    """Appends batches and markers, and lets those wait that count only once they are on the disk.

    Without other replicas the high watermark is the log's end, or the end of what is on the disk where appends wait for
    that: it moves in `append` and in `synced`. With other replicas `ReplicaProgress` moves it.
    """

    __slots__ = ("_counts_at_once", "_progress", "_state", "_unsynced", "_watchers")

    def __init__(self, state: PartitionState, watchers: FetchWatchers, progress: ReplicaProgress) -> None:
        self._state = state
        self._watchers = watchers
        self._progress = progress
        self._unsynced = UnsyncedAppends()
        self._counts_at_once = False
        """Whether an append is below the high watermark as soon as it is in the log."""
        self.role_changed()

    def role_changed(self) -> None:
        """Take note of the partition's role."""
        self._counts_at_once = not (self._state.waits_for_sync or self._state.is_replicated)

    @property
    def log(self) -> Log:
        """The partition's log, for its group commit."""
        return self._state.log

    def append(
        self, entry: Buffer | CheckedBatch | Marker, now_ms: int, from_client: bool, guard: Guard | None
    ) -> Appended:
        """Append a batch or a marker now.

        Raises RollNeededError when the log needs a new segment first, and KafkaError for an entry that the log rejects.
        """
        state = self._state
        try:
            if is_marker := isinstance(entry, Marker):
                size_bytes = MARKER_BYTES
                result = state.log.append_marker(entry, leader_epoch=state.leader_epoch, now_ms=now_ms)
            else:
                size_bytes = len(entry)
                result = state.log.append(
                    entry, leader_epoch=state.leader_epoch, now_ms=now_ms, from_client=from_client, guard=guard
                )
        except KafkaError as problem:
            if problem.code is ErrorCode.KAFKA_STORAGE_ERROR:
                remember_refused(state.log, entry)
            state.report_failure(problem)
            raise
        if state.account is not None:
            state.count_bytes()
        log_state = state.log.state
        if not self._counts_at_once or result.end.offset - log_state.recovery_point >= log_state.config.flush_messages:
            return self._count_later(result, size_bytes, now_ms)
        state.high_watermark = result.end
        if is_marker:
            state.settle_transactions()
        watchers = self._watchers
        if watchers.read_uncommitted or watchers.read_committed:
            watchers.notify(size_bytes)
        return result

    def _count_later(self, result: AppendResult, size_bytes: int, now_ms: int) -> Appended:
        """Let an append wait for a sync if it has to; with other replicas the high watermark comes later anyway."""
        state = self._state
        if state.is_replicated:
            if not result.duplicate:
                self._watchers.notify_appended(size_bytes)
            log_state = state.log.state
            is_due = result.end.offset - log_state.recovery_point >= log_state.config.flush_messages
            if not (state.waits_for_sync or is_due):
                self._progress.advance(now_ms)
                return result
        return self._wait_for_sync(result, size_bytes)

    def _wait_for_sync(self, result: AppendResult, size_bytes: int) -> Appended:
        """Let an append wait for the next sync; all later appends wait too, as the high watermark does."""
        state = self._state
        # After a start, or when flush.messages was larger before, consumers may see what is not on the disk yet.
        if result.duplicate and result.last_offset < min(state.high_watermark.offset, state.log.recovery_point):
            return result
        state.waits_for_sync = True
        self._counts_at_once = False
        state.host.commit.join(self)
        return self._unsynced.add(result, 0 if result.duplicate else size_bytes)

    def synced(self, end: OffsetPosition) -> None:
        """Raise the high watermark to *end*, the end of what is on the disk, and answer the appends before it."""
        state = self._state
        state.synced_offset = end.offset
        if not state.is_replicated and state.leading is not None:
            state.raise_high_watermark(end)
        done = self._unsynced.take(end.offset)
        state.waits_for_sync = state.host.commit.always or bool(self._unsynced)
        self.role_changed()
        if state.is_replicated:
            self._progress.advance()
        elif done:
            self._watchers.notify(sum(append.size_bytes for append in done))
        for append in done:
            append.answer.callback(append.result)

    def sync_rest(self) -> None:
        """Let the next sync include what this replica appended in its role before, where only that counts."""
        state = self._state
        if state.waits_for_sync and state.log.recovery_point < state.log.log_end_offset:
            state.host.commit.join(self)

    def refuse(self, refusal: KafkaError) -> None:
        """Fail every append that waits for a sync, and leave the group commit."""
        self._state.host.commit.leave(self)
        self._unsynced.refuse(refusal)


def remember_refused(log: Log, entry: Buffer | CheckedBatch | Marker) -> None:
    """Note a batch that the disk cannot take now: an unknown producer must begin with this batch when it tries again.

    A transactional batch needs no note: its coordinator vouched for it.
    """
    if isinstance(entry, CheckedBatch) and not entry.header.is_transactional:
        header, state = entry.header, log.producer_state
        if header.producer_id >= 0 and header.producer_id not in state.producers.packed:
            state.verifications.begin(header.producer_id, header.producer_epoch, header.base_sequence, False)
