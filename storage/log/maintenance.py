"""New segments of a log, its flushes, and its close."""

from __future__ import annotations

import os

from kafkacompat.storage.log.partition_metadata import write_partition_metadata
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.segment.segment import Segment


class LogMaintenance:
    """Adds segments, syncs appended batches, moves the recovery point, and closes the log."""

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state

    def note_new(self) -> None:
        """Let `make_durable` or the next flush sync the folder and write its partition.metadata."""
        self._state.is_new = True
        self._state.folder_is_synced = False

    def prepare_segment(self, base_offset: int) -> Segment:
        """Create the files of a segment at the log's end, and a snapshot of the producers. [disk; no append meanwhile]

        If there is no room, KafkaError KAFKA_STORAGE_ERROR leaves the log unchanged, and the caller may retry.
        """
        if base_offset != self._state.log_end_offset or base_offset == self._state.segments.active.base_offset:
            raise ValueError(
                f"a segment at {base_offset} cannot follow {self._state.segments.active!r} of {self._state!r}"
            )
        with self._state.disk_operation(repeatable=True):
            if self._state.is_new:
                # Otherwise a crash might leave the new segment without the first.
                self._sync_folder()
            self._state.folder_is_synced = False
            self._state.snapshots.write(base_offset, self._state.producer_state.producers.entries())
            return Segment.create(self._state.files, self._state.directory, base_offset, self._state.cache)

    def roll(self, segment: Segment) -> Segment:
        """Append to `segment` from now on; returns the previous one, which the caller seals. [loop]"""
        if segment.base_offset != self._state.log_end_offset:
            raise ValueError(f"{segment!r} does not begin at the end of {self._state!r}")
        old = self._state.segments.active
        old.finish_time_index()
        self._state.segments.replace([*self._state.segments, segment])
        self._state.recent_batches.clear()
        return old

    def seal(self, segment: Segment) -> None:
        """Sync a rolled segment and all before it, with their indexes. [disk]

        If there is no room, KafkaError KAFKA_STORAGE_ERROR leaves the log unchanged; the next seal or flush makes up for it.
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
        """Sync the folder of a new log, with its partition.metadata; a flush does so too. [disk]

        If there is no room, KafkaError KAFKA_STORAGE_ERROR leaves the log unchanged; the next flush makes up for it.
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
        """Return whether flush.ms has passed since the first unflushed append. [loop]"""
        return self._state.dirty_since_ms >= 0 and now_ms - self._state.dirty_since_ms > self._state.config.flush_ms

    def flush(self) -> int:
        """Sync everything appended so far; returns the new recovery point. [disk]

        If there is no room for indexes or epochs, KafkaError KAFKA_STORAGE_ERROR leaves the log unchanged.
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
        """As `flush`, for a log just opened: write everything after the recovery point again first. [disk]

        If a sync of an earlier process failed, the page cache has contents that the disk lacks and no sync would write.
        """
        with self._state.disk_operation():
            for segment in self._state.segments.since(self._state.recovery_point):
                segment.write_again(segment.indexes()[0].lookup(self._state.recovery_point))
        return self.flush()

    def close(self) -> None:
        """Flush, write the files that a clean start reads, and close every file. [disk; nothing else meanwhile]"""
        if self._state.closed:
            return
        self.flush()
        with self._state.disk_operation():
            active = self._state.segments.active
            active.finish_time_index()
            # Most of thousands of logs have not changed since the start: their files stay as they are.
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
        """Close every file without writing anything, and take the log offline. [loop]"""
        self._state.take_offline("it is closed")
        for segment in self._state.segments:
            self._state.cache.forget(segment)
            segment.unload()
