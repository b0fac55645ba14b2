"""What keeps a log in shape: new segments, syncing, closing."""

from __future__ import annotations

import os

from kafkacompat.storage.log.partition_metadata import write_partition_metadata
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.segment.segment import Segment


class LogMaintenance:
    """Adds segments, puts what was appended on the disk, moves the recovery point, and closes the log."""

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state

    def note_new(self) -> None:
        """Let the next flush, or `make_durable`, put the folder on the disk, with its partition.metadata."""
        self._state.is_new = True
        self._state.folder_is_synced = False

    def prepare_segment(self, base_offset: int) -> Segment:
        """Make the files of the segment that begins at the log's end. [disk; no append meanwhile]

        The producers' state at that offset is written beside it. KafkaError KAFKA_STORAGE_ERROR for want of room
        leaves the log as it was, to be tried again later.
        """
        if base_offset != self._state.log_end_offset or base_offset == self._state.segments.active.base_offset:
            raise ValueError(
                f"a segment at {base_offset} cannot follow {self._state.segments.active!r} of {self._state!r}"
            )
        with self._state.disk_operation(repeatable=True):
            if self._state.is_new:
                # Else a crash might leave the new segment and take the first.
                self._sync_folder()
            self._state.folder_is_synced = False
            self._state.snapshots.write(base_offset, self._state.producer_state.producers.entries())
            return Segment.create(self._state.files, self._state.directory, base_offset, self._state.cache)

    def roll(self, segment: Segment) -> Segment:
        """Append to `segment` from now on; returns the segment before it, which is to be sealed. [loop]"""
        if segment.base_offset != self._state.log_end_offset:
            raise ValueError(f"{segment!r} does not begin at the end of {self._state!r}")
        old = self._state.segments.active
        old.finish()
        self._state.segments.replace([*self._state.segments, segment])
        self._state.recent_batches.clear()
        return old

    def seal(self, segment: Segment) -> None:
        """Put a segment that takes no more batches, and all before it, on the disk. [disk]

        KafkaError KAFKA_STORAGE_ERROR for want of room leaves the log as it was; `flush` and the next seal do it then.
        """
        with self._state.disk_operation(repeatable=True):
            self._seal_through(segment.base_offset)

    def _seal_through(self, base_offset: int) -> None:
        for segment, successor in self._state.segments.unsealed():
            if segment.base_offset <= base_offset:
                self._state.leader_epochs.write()
                segment.seal()
                self._sync_folder()
                self._state.recovery_point = max(self._state.recovery_point, successor.base_offset)

    def make_durable(self) -> None:
        """Put the folder of a new log on the disk, and in it whose it is; flushing does so too. [disk]

        KafkaError KAFKA_STORAGE_ERROR for want of room leaves the log as it was; the next flush does it then.
        """
        if self._state.is_new and not self._state.offline:
            with self._state.disk_operation(repeatable=True):
                self._sync_folder()

    def _sync_folder(self) -> None:
        if self._state.is_new:
            write_partition_metadata(self._state.files, self._state.directory, self._state.topic_id)
            self._state.files.sync_directory(os.path.dirname(self._state.directory))
            self._state.is_new = False
        else:
            self._state.files.sync_directory(self._state.directory)
        self._state.folder_is_synced = True

    def flush_is_overdue(self, now_ms: int) -> bool:
        """Whether flush.ms asks for a flush. [loop]"""
        return self._state.dirty_since_ms >= 0 and now_ms - self._state.dirty_since_ms > self._state.config.flush_ms

    def flush(self) -> int:
        """Put everything appended so far on the disk; returns the new recovery point. [disk]

        KafkaError KAFKA_STORAGE_ERROR for want of room, which indexes and epochs need, leaves the log as it was.
        """
        with self._state.disk_operation(repeatable=True):
            dirty_since_ms, self._state.dirty_since_ms = self._state.dirty_since_ms, -1
            try:
                return self._flush()
            except OSError:
                self._state.dirty_since_ms = dirty_since_ms
                raise

    def _flush(self) -> int:
        end_offset = self._state.log_end_offset
        if end_offset > self._state.recovery_point:
            active = self._state.segments.active
            self._seal_through(active.base_offset - 1)
            active.sync()
            if active.transactions.write():
                self._state.folder_is_synced = False
            if not self._state.folder_is_synced:
                self._sync_folder()
            self._state.recovery_point = max(self._state.recovery_point, end_offset)
        self._state.leader_epochs.write(end_offset)
        return self._state.recovery_point

    def flush_recovered(self) -> int:
        """As `flush`, for a log just opened: what a process before this one wrote is written once more. [disk]

        If a sync of its failed, the kernel shows what is not on the disk, and would sync it no more.
        """
        with self._state.disk_operation():
            for segment in self._state.segments.since(self._state.recovery_point):
                segment.write_again(segment.indexes()[0].lookup(self._state.recovery_point))
        return self.flush()

    def close(self) -> None:
        """Flush, write what a clean start reads, and give every file back. [disk; nothing else meanwhile]"""
        if self._state.closed:
            return
        self.flush()
        with self._state.disk_operation():
            active = self._state.segments.active
            active.finish()
            # Of thousands of logs most have not changed since the start: they are left alone.
            if active.indexes_changed:
                active.write_indexes()
                self._state.folder_is_synced = False
            is_empty = self._state.log_end_offset == self._state.segments[0].base_offset
            if not is_empty and self._state.snapshots.offsets()[-1:] != [self._state.log_end_offset]:
                self._state.snapshots.write(self._state.log_end_offset, self._state.producer_state.producers.entries())
                self._state.folder_is_synced = False
            if not self._state.folder_is_synced:
                self._sync_folder()
        self.release()
        self._state.closed = True

    def release(self) -> None:
        """Give every file back without writing anything; the log is offline then. [loop]"""
        self._state.offline = True
        for segment in self._state.segments:
            self._state.cache.forget(segment)
            segment.unload()
