"""What keeps a log in shape: new segments, syncing, truncation, retention, closing."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kafkacompat.storage.log.partition_metadata import write_partition_metadata
from kafkacompat.storage.log.recovery import empty_log
from kafkacompat.storage.log.retention import expired_segments
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.producers.recovery import rebuild_producer_state
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import DELETED_SUFFIX, SegmentFiles
from kafkacompat.storage.segment.segments import take_from_end
from kafkacompat.wire.errors import ErrorCode, KafkaError


class LogMaintenance(LogState):
    """Rolling, flushing, truncating, deleting, closing."""

    def prepare_segment(self, base_offset: int) -> Segment:
        """Make the files of the segment that begins at the log's end. [disk; no append meanwhile]

        The producers' state at that offset is written beside it. KafkaError KAFKA_STORAGE_ERROR for want of room
        leaves the log as it was, to be tried again later.
        """
        if base_offset != self.log_end_offset or base_offset == self.segments.active.base_offset:
            raise ValueError(f"a segment at {base_offset} cannot follow {self.segments.active!r} of {self!r}")
        with self._disk_operation(repeatable=True):
            if self.is_new:
                # Else a crash might leave the new segment and take the first.
                self._sync_folder()
            self._folder_is_synced = False
            self._snapshots.write(base_offset, self.producer_state.producers.entries())
            return Segment.create(self._files, self.directory, base_offset, self._cache)

    def roll(self, segment: Segment) -> Segment:
        """Append to `segment` from now on; returns the segment before it, which is to be sealed. [loop]"""
        if segment.base_offset != self.log_end_offset:
            raise ValueError(f"{segment!r} does not begin at the end of {self!r}")
        old = self.segments.active
        old.finish()
        self.segments.replace([*self.segments, segment])
        self._recent.clear()
        return old

    def seal(self, segment: Segment) -> None:
        """Put a segment that takes no more batches, and all before it, on the disk. [disk]

        KafkaError KAFKA_STORAGE_ERROR for want of room leaves the log as it was; `flush` and the next seal do it then.
        """
        with self._disk_operation(repeatable=True):
            self._seal_through(segment.base_offset)

    def _seal_through(self, base_offset: int) -> None:
        for segment, successor in self.segments.unsealed():
            if segment.base_offset <= base_offset:
                self.leader_epochs.write()
                segment.seal()
                self._sync_folder()
                self.recovery_point = max(self.recovery_point, successor.base_offset)

    def make_durable(self) -> None:
        """Put the folder of a new log on the disk, and in it whose it is; flushing does so too. [disk]

        KafkaError KAFKA_STORAGE_ERROR for want of room leaves the log as it was; the next flush does it then.
        """
        if self.is_new and not self.offline:
            with self._disk_operation(repeatable=True):
                self._sync_folder()

    def _sync_folder(self) -> None:
        if self.is_new:
            write_partition_metadata(self._files, self.directory, self.topic_id)
            self._files.sync_directory(os.path.dirname(self.directory))
            self.is_new = False
        else:
            self._files.sync_directory(self.directory)
        self._folder_is_synced = True

    def flush_is_overdue(self, now_ms: int) -> bool:
        """Whether flush.ms asks for a flush. [loop]"""
        return self._dirty_since_ms >= 0 and now_ms - self._dirty_since_ms > self.config.flush_ms

    def flush(self) -> int:
        """Put everything appended so far on the disk; returns the new recovery point. [disk]

        KafkaError KAFKA_STORAGE_ERROR for want of room, which indexes and epochs need, leaves the log as it was.
        """
        with self._disk_operation(repeatable=True):
            dirty_since_ms, self._dirty_since_ms = self._dirty_since_ms, -1
            try:
                return self._flush()
            except OSError:
                self._dirty_since_ms = dirty_since_ms
                raise

    def _flush(self) -> int:
        end_offset = self.log_end_offset
        if end_offset > self.recovery_point:
            active = self.segments.active
            self._seal_through(active.base_offset - 1)
            active.sync()
            if active.transactions.write():
                self._folder_is_synced = False
            if not self._folder_is_synced:
                self._sync_folder()
            self.recovery_point = max(self.recovery_point, end_offset)
        self.leader_epochs.write(end_offset)
        return self.recovery_point

    def flush_recovered(self) -> int:
        """As `flush`, for a log just opened: what a process before this one wrote is written once more. [disk]

        If a sync of its failed, the kernel shows what is not on the disk, and would sync it no more.
        """
        with self._disk_operation():
            for segment in self.segments.since(self.recovery_point):
                segment.write_again(segment.indexes()[0].lookup(self.recovery_point))
        return self.flush()

    def close(self) -> None:
        """Flush, write what a clean start reads, and give every file back. [disk; nothing else meanwhile]"""
        if self.closed:
            return
        self.flush()
        with self._disk_operation():
            active = self.segments.active
            active.finish()
            # Of thousands of logs most have not changed since the start: they are left alone.
            if active.indexes_changed:
                active.write_indexes()
                self._folder_is_synced = False
            is_empty = self.log_end_offset == self.segments[0].base_offset
            if not is_empty and self._snapshots.offsets()[-1:] != [self.log_end_offset]:
                self._snapshots.write(self.log_end_offset, self.producer_state.producers.entries())
                self._folder_is_synced = False
            if not self._folder_is_synced:
                self._sync_folder()
        self.release()
        self.closed = True

    def release(self) -> None:
        """Give every file back without writing anything; the log is offline then. [loop]"""
        self.offline = True
        for segment in self.segments:
            self._cache.forget(segment)
            segment.unload()

    # --- making the log shorter ---

    def advance_log_start_offset(self, offset: int) -> bool:
        """Let the log begin at `offset`; False when it already begins there or later. [loop]

        Raises KafkaError OFFSET_OUT_OF_RANGE beyond the log's end.
        """
        if offset > self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{offset} is behind the log's end {self.log_end_offset}")
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        return True

    def expired_segments(self, *, high_watermark: int, now_ms: int) -> list[Segment]:
        """The oldest segments that retention lets go; see retention.py. [loop]

        When the active segment is among them, roll first.
        """
        return expired_segments(
            self.segments, self.config, self.log_start_offset, self.log_end_offset, high_watermark, now_ms
        )

    def detach(self, segments: Sequence[Segment]) -> None:
        """Let the log begin behind its oldest `segments`, which are sealed; their files stay. [loop]"""
        if list(segments) != list(self.segments)[: len(segments)] or self.segments.active in segments:
            raise ValueError(f"{segments} are not the oldest segments of {self!r}")
        if segments:
            self.segments.replace(list(self.segments)[len(segments) :])
            self.advance_log_start_offset(max(self.log_start_offset, self.segments[0].base_offset))

    def mark_deleted(self, segments: Sequence[Segment]) -> None:
        """Rename the files of detached segments, so that they count for nothing after a restart. [disk]

        The oldest go first, each for good before the next: a crash in between leaves no gap, which would be taken
        for a loss. Regions of them can still be sent.
        """
        with self._disk_operation():
            for segment in segments:
                segment.files.rename(DELETED_SUFFIX)
                self._files.sync_directory(self.directory)
            self._snapshots.remove(*(segment.base_offset for segment in segments))

    def delete_segments(self, segments: Sequence[Segment]) -> None:
        """Remove the files of detached segments, marked or not. [disk]"""
        with self._disk_operation():
            for segment in segments:
                segment.unload()
                segment.files.remove()
            self._snapshots.remove(*(segment.base_offset for segment in segments))

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that holds `offset` or a later one. [disk; nothing else meanwhile]

        With an offset before the oldest segment the log is emptied and begins there. On return the shorter log
        is on the disk. Before anything is appended its recovery point and its cleaner offset have to be written down: those that
        were lie behind what a crash would leave.
        """
        with self._disk_operation():
            self._recent.clear()
            if offset < self.segments[0].base_offset:
                self._start_over_at(offset)
            elif offset < self.log_end_offset:
                self._cut(offset)
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            self.leader_epochs.write()
            if self.cleaner_offset is not None:
                self.cleaner_offset = min(self.cleaner_offset, self.log_end_offset)

    def _start_over_at(self, offset: int) -> None:
        self._drop(list(self.segments))
        loaded = empty_log(self._files, self.directory, self._cache, offset)
        self._files.sync_directory(self.directory)
        self.segments.replace(list(loaded.segments))
        self.leader_epochs = loaded.leader_epochs
        self.producer_state = loaded.producer_state
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset

    def _cut(self, offset: int) -> None:
        slot = self.segments.floor(offset)
        kept = list(self.segments)[: slot + 1]
        self._drop(list(self.segments)[slot + 1 :])
        self.segments.replace(kept)
        # The log's beginning may lie inside the batch that is dropped; offsets before it are never given again.
        self.log_end_offset = max(kept[-1].cut(offset), min(offset, self.log_start_offset))
        kept[-1].truncate_aborted(self.log_end_offset)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self.producer_state = rebuild_producer_state(
            self._files, self.directory, self.segments, self.log_end_offset, 0, self.config, clean_shutdown=False
        )

    def _drop(self, segments: Sequence[Segment]) -> None:
        take_from_end(self._files, self.directory, segments, self._cache, SegmentFiles.remove)
