"""Making a log shorter: at its beginning by retention and deleted records, at its end by truncation."""

from __future__ import annotations

from collections.abc import Sequence

from kafkacompat.storage.log.examiner import LogExaminer
from kafkacompat.storage.log.recovery import create_empty_log
from kafkacompat.storage.log.retention import find_expired_segments
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.log.transaction_index_recovery import ensure_transaction_index
from kafkacompat.storage.producers.recovery import rebuild_producer_state
from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import DELETED_SUFFIX, SegmentFiles
from kafkacompat.storage.segment.segments import take_newest_segments
from kafkacompat.wire.errors import ErrorCode, KafkaError


class LogTrimmer:
    """Takes segments out of the log, moves its start offset forward and its end back."""

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state

    def advance_log_start_offset(self, offset: int) -> bool:
        """Move the log start offset to `offset`; returns False if it is there or later already. [loop]

        Raises KafkaError OFFSET_OUT_OF_RANGE after the log's end.
        """
        if offset > self._state.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is after the log's end {self._state.log_end_offset}"
            )
        if offset <= self._state.log_start_offset:
            return False
        self._state.log_start_offset = offset
        self._state.leader_epochs.truncate_from_start(offset)
        return True

    def expired_segments(self, *, high_watermark: int, now_ms: int) -> list[Segment]:
        """Return the oldest segments that retention may delete; see retention.py. [loop]

        If the active segment is among them, roll before `detach`.
        """
        return find_expired_segments(
            self._state.segments,
            self._state.config,
            self._state.log_start_offset,
            self._state.log_end_offset,
            high_watermark,
            now_ms,
        )

    def detach(self, segments: Sequence[Segment]) -> None:
        """Take its oldest `segments`, which are sealed, out of the log; their files stay. [loop]"""
        if list(segments) != list(self._state.segments)[: len(segments)] or self._state.segments.active in segments:
            raise ValueError(f"{segments} are not the oldest segments of {self._state!r}")
        if segments:
            self._state.segments.replace(list(self._state.segments)[len(segments) :])
            self.advance_log_start_offset(max(self._state.log_start_offset, self._state.segments[0].base_offset))

    def mark_deleted(self, segments: Sequence[Segment]) -> None:
        """Rename the files of detached segments, so that a restart ignores them. [disk]

        The oldest is renamed and synced first: a crash leaves no gap, which recovery would take for a loss. Regions of the
        segments can still be sent.
        """
        with self._state.disk_operation():
            for segment in segments:
                segment.files.rename(DELETED_SUFFIX)
                self._state.files.sync_directory(self._state.directory)
            self._state.snapshots.remove(*(segment.base_offset for segment in segments))

    def delete_segments(self, segments: Sequence[Segment]) -> None:
        """Remove the files of detached segments, whether `mark_deleted` has renamed them or not. [disk]"""
        with self._state.disk_operation():
            for segment in segments:
                segment.unload()
                segment.files.remove()
            self._state.snapshots.remove(*(segment.base_offset for segment in segments))

    def truncate_to(self, offset: int, *, high_watermark: int | None = None) -> None:
        """Drop every batch that holds `offset` or a later one, and sync the log. [disk; nothing else meanwhile]

        An offset before the oldest segment empties the log, which begins there. The transactions whose markers are not
        below `high_watermark` (default: the new end) stay open. Before the next append, the caller writes the checkpoints
        of recovery point and cleaner offset: the old ones are after the log's end.

        Raises KafkaError KAFKA_STORAGE_ERROR; the log is offline then.
        """
        with self._state.disk_operation():
            self._state.recent_batches.clear()
            if offset < self._state.segments[0].base_offset:
                self._start_over_at(offset)
            elif offset < self._state.log_end_offset:
                self._cut(offset, high_watermark)
            self._cut_epochs_and_cleaner_offset()

    def start_over_at(self, offset: int) -> None:
        """Drop everything, and let the log begin, empty, at `offset`. [disk; nothing else meanwhile]

        A follower does so if its leader's log begins after the follower's end, or ends before the follower's start. The
        caller writes the checkpoints as after `truncate_to`. A crash leaves a shorter log, or an empty one.

        Raises KafkaError KAFKA_STORAGE_ERROR; the log is offline then.
        """
        with self._state.disk_operation():
            self._state.recent_batches.clear()
            self._start_over_at(offset)
            self._cut_epochs_and_cleaner_offset()

    def _cut_epochs_and_cleaner_offset(self) -> None:
        state = self._state
        state.leader_epochs.truncate_from_end(state.log_end_offset)
        state.leader_epochs.write()
        if state.cleaner_offset is not None:
            state.cleaner_offset = min(state.cleaner_offset, state.log_end_offset)

    def _start_over_at(self, offset: int) -> None:
        self._drop(list(self._state.segments))
        loaded = create_empty_log(self._state.files, self._state.directory, self._state.cache, offset)
        self._state.files.sync_directory(self._state.directory)
        self._state.segments.replace(list(loaded.segments))
        self._state.leader_epochs = loaded.leader_epochs
        self._state.producer_state = loaded.producer_state
        self._state.log_start_offset = self._state.log_end_offset = self._state.recovery_point = offset

    def _cut(self, offset: int, high_watermark: int | None) -> None:
        slot = self._state.segments.find_slot(offset)
        kept = list(self._state.segments)[: slot + 1]
        self._make_readable(kept[-1], offset)
        self._drop(list(self._state.segments)[slot + 1 :])
        self._state.segments.replace(kept)
        # The log start offset may lie inside the dropped batch; offsets before it are never assigned again.
        self._state.log_end_offset = max(kept[-1].truncate_to(offset), min(offset, self._state.log_start_offset))
        kept[-1].truncate_aborted(self._state.log_end_offset)
        self._state.log_start_offset = min(self._state.log_start_offset, self._state.log_end_offset)
        self._state.recovery_point = min(self._state.recovery_point, self._state.log_end_offset)
        self._rebuild_producers(high_watermark)

    def _rebuild_producers(self, high_watermark: int | None) -> None:
        state, before = self._state, self._state.producer_state
        state.producer_state = rebuild_producer_state(
            state.files, state.directory, state.segments, state.log_end_offset, 0, state.config, False, high_watermark
        )
        if high_watermark is not None:
            # A snapshot does not have the transactions whose markers are before it, and not replicated yet.
            state.producer_state.open.keep_decided(before.open, state.log_end_offset)
            state.producer_state.open.remove_decided(high_watermark)

    def _make_readable(self, segment: Segment, offset: int) -> None:
        """Repair or examine what the cut reads of its segment, before anything changes."""
        ensure_transaction_index(self._state, segment)
        try:
            self._find(segment, offset)
        except CorruptDataError as error:
            if error.bad is None:
                LogExaminer(self._state).examine_and_reindex(segment)
                self._find_again(segment, offset)

    def _find_again(self, segment: Segment, offset: int) -> None:
        try:
            self._find(segment, offset)
        except CorruptDataError as error:
            if error.bad is None:
                self._state.take_offline(f"it cannot be truncated to offset {offset} ({error})")
                raise self._state.offline_error() from error

    def _find(self, segment: Segment, offset: int) -> None:
        with segment.pin() as file:
            segment.find_batch(offset, segment.size_bytes, file)

    def _drop(self, segments: Sequence[Segment]) -> None:
        take_newest_segments(self._state.files, self._state.directory, segments, self._state.cache, SegmentFiles.remove)
