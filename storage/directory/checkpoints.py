"""Kafka's checkpoint files of a log directory: offsets of its logs (docs/format/checkpoints.md)."""

from __future__ import annotations

import os

from kafkacompat.storage.files.checkpoints import CorruptCheckpointError, read_offsets, write_offsets
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.log.log import Log

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"


class DirectoryCheckpoints:
    """The offsets of each file, by (topic, partition). Only methods with `write` in their names touch the disk."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self.recovery_points = self._read(RECOVERY_POINTS)
        self.log_start_offsets = self._read(LOG_START_OFFSETS)
        self.high_watermarks = self._read(HIGH_WATERMARKS)
        self.cleaner_offsets = self._read(CLEANER_OFFSETS)
        self._deleted: set[tuple[str, int]] = set()

    def _read(self, name: str) -> dict[tuple[str, int], int]:
        try:
            return read_offsets(self._files, os.path.join(self._path, name))
        except CorruptCheckpointError:
            # As in Kafka: without the checkpoint, recovery reads more, but loses nothing.
            return {}

    def note_offsets(self, log: Log, high_watermark: int) -> None:
        """Note the current offsets of a log, which may have become shorter since `high_watermark` was read."""
        name = (log.topic, log.partition)
        self.recovery_points[name] = log.recovery_point
        self.high_watermarks[name] = min(high_watermark, log.log_end_offset)
        self.note_log_start_offset(log)

    def note_log_start_offset(self, log: Log) -> None:
        """Note the log start offset of a log if it is after the base offset of the first segment."""
        name = (log.topic, log.partition)
        if log.log_start_offset > log.segments[0].base_offset:
            self.log_start_offsets[name] = log.log_start_offset
        else:
            self.log_start_offsets.pop(name, None)

    def note_cleaner_offset(self, log: Log) -> None:
        """Note where the last compaction of a log stopped."""
        if log.cleaner_offset is not None:
            self.cleaner_offsets[log.topic, log.partition] = log.cleaner_offset

    def forget(self, name: tuple[str, int]) -> None:
        """Leave a deleted partition out of the next write."""
        self._deleted.add(name)

    def include(self, name: tuple[str, int]) -> None:
        """Include a partition again that was moved here, without an earlier cleaner offset."""
        self._deleted.discard(name)
        self.cleaner_offsets.pop(name, None)

    def write_without(self, name: tuple[str, int]) -> None:
        """Write the files without a partition, unless they do not have it."""
        if name in self._deleted or any(name in offsets for offsets in self._list_all().values()):
            self._deleted.add(name)
            self.write()

    def _list_all(self) -> dict[str, dict[tuple[str, int], int]]:
        return {
            RECOVERY_POINTS: self.recovery_points,
            LOG_START_OFFSETS: self.log_start_offsets,
            HIGH_WATERMARKS: self.high_watermarks,
            CLEANER_OFFSETS: self.cleaner_offsets,
        }

    def write(self) -> None:
        """Write all files, without deleted partitions."""
        for file_name, offsets in self._list_all().items():
            had_any = bool(offsets)
            for name in self._deleted:
                offsets.pop(name, None)
            if had_any or file_name != CLEANER_OFFSETS:
                self._write(file_name, offsets)
        self._deleted.clear()

    def write_log_start_offset(self, log: Log) -> None:
        """Write the log start offset of a log."""
        self.note_log_start_offset(log)
        self._write(LOG_START_OFFSETS, self.log_start_offsets)

    def write_cleaner_offset(self, log: Log) -> None:
        """Write where the last compaction of a log stopped."""
        self.note_cleaner_offset(log)
        self._write(CLEANER_OFFSETS, self.cleaner_offsets)

    def _write(self, file_name: str, offsets: dict[tuple[str, int], int]) -> None:
        write_offsets(self._files, os.path.join(self._path, file_name), offsets)
