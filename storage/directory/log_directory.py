"""One of the broker's log.dirs: a folder of partition folders, beside Kafka's own files.

One process at a time holds a directory (`.lock`), and it belongs to one node of one cluster (`meta.properties`). It
records what a restart needs: each log's recovery point, log start offset and high watermark, and whether the last
process shut down cleanly. Everything here is a disk operation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from kafkacompat.storage.directory.checkpoints import DirectoryCheckpoints
from kafkacompat.storage.directory.claim import claim_log_directory, lock_log_directory
from kafkacompat.storage.directory.last_start import LastStart, judge_start, read_last_start, write_last_start
from kafkacompat.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES
from kafkacompat.storage.directory.meta_properties import LogDirectoryError
from kafkacompat.storage.directory.partition_folders import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    STRAY_SUFFIX,
    find_copies,
    make_random_ending,
    remove_deleted_folders,
    rename_partition_folder,
)
from kafkacompat.storage.directory.stored_partitions import StoredPartition, list_stored_partitions, read_topic_id
from kafkacompat.storage.files.checkpoints import replace_file
from kafkacompat.storage.files.filesystem import DiskUsage, FileLock, Files
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.log.copy import LogCopy
from kafkacompat.storage.log.legacy_segments import convert_legacy
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.positions import OffsetPosition
from kafkacompat.storage.segment.segment_files import find_last_segment, has_segment_files
from kafkacompat.storage.segment.shared_files import SegmentCache
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID

__all__ = ["LogDirectory", "LogDirectoryError", "StoredPartition"]

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"

_CLEAN_SHUTDOWN_CONTENTS = b'{"version":0,"brokerEpoch":-1}'


class LogDirectory:
    """A log directory that this process holds."""

    def __init__(
        self, files: Files, path: str, lock: FileLock, directory_id: bytes, clean_shutdown: bool, cache: SegmentCache
    ) -> None:
        self._files = files
        self._lock = lock
        self._cache = cache
        self.path = path
        self.directory_id = directory_id
        self.clean_shutdown = clean_shutdown
        """Whether the last process shut down cleanly."""
        self.start: LastStart | None = None
        """What a broker of a cluster may have lost here."""
        self.device = files.device(path)
        """The number of its file system."""
        self.checkpoints = DirectoryCheckpoints(files, path)
        self._unopened: set[tuple[str, int]] = set()

    @classmethod
    def open(
        cls,
        files: Files,
        path: str,
        *,
        node_id: int,
        cluster_id: str,
        new_directory_id: bytes,
        cache: SegmentCache | None = None,
        boot_id: str | None = None,
    ) -> LogDirectory:
        """Claim a directory, created if absent, for a node; `new_directory_id` becomes its id if it has none.

        Several directories may share a `cache`. A broker of a cluster passes the `boot_id` of its machine ("" if unknown), and
        what it may have lost is in `start` then. Raises LogDirectoryError if another process holds the directory, if it
        belongs to another node or cluster, or if it cannot be written.
        """
        lock = lock_log_directory(files, path)
        try:
            is_new = not files.exists(os.path.join(path, META_PROPERTIES))
            directory_id = claim_log_directory(files, path, node_id, cluster_id, new_directory_id)
            marker = os.path.join(path, CLEAN_SHUTDOWN_FILE)
            clean_shutdown = files.exists(marker)
            start = None
            if boot_id is not None:
                last = read_last_start(files, path)
                start = judge_start(last, boot_id, is_new=is_new, is_clean=clean_shutdown)
                write_last_start(files, path, start)
            if clean_shutdown:
                # From now on this process has to write the marker itself.
                files.remove(marker)
            # A killed process may have created files whose names are not on the disk yet.
            files.sync_directory(path)
            cache = SegmentCache() if cache is None else cache
            directory = cls(files, path, lock, directory_id, clean_shutdown, cache)
            directory.start = start
            directory.remove_deleted()
            return directory
        except OSError as error:
            lock.release()
            raise LogDirectoryError(
                f"log directory {path} cannot be written ({describe_error(error)}); make room or repair it"
            ) from error
        except BaseException:
            lock.release()
            raise

    def confirm_contents(self) -> None:
        """Note that the cluster knows what the directory has lost; the next start need not say it again."""
        if self.start is not None:
            self.start = LastStart(self.start.boot_id)
            write_last_start(self._files, self.path, self.start)

    def disk_usage(self) -> DiskUsage:
        """Return total and free bytes of its file system."""
        return self._files.disk_usage(self.path)

    # --- partitions ---

    def list_partitions(self) -> list[StoredPartition]:
        """Return every partition with a folder here, or a link to one. Raises LogDirectoryError for a link to nothing."""
        return list_stored_partitions(self._files, self.path)

    def shares_folder(self, other: LogDirectory, topic: str, partition: int) -> bool:
        """Return whether a link makes the partition's folders here and in another directory the same."""
        own_target, other_target = (
            self._files.target(directory.folder(topic, partition)) for directory in (self, other)
        )
        return own_target == other_target

    def folder(self, topic: str, partition: int) -> str:
        """Return the path of a partition's folder, which need not exist."""
        return os.path.join(self.path, f"{topic}-{partition}")

    def open_log(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        now_ms: int,
        *,
        is_replicated: bool = False,
    ) -> Log:
        """Open a partition's log, with recovery if need be, or create it.

        A folder of an earlier topic of that name, whose deletion a crash or another broker missed, is set aside first.
        Unless the log `is_replicated` on other brokers, everything in it counts as replicated; see `find_high_watermark`.
        Raises KafkaError KAFKA_STORAGE_ERROR if the disk fails.
        """
        folder, name = self.folder(topic, partition), (topic, partition)
        # Until the log is open, no clean shutdown marker may be written.
        self._unopened.add(name)
        try:
            log = self._open_or_create(folder, topic, partition, topic_id, config, now_ms, is_replicated)
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"opening {folder} failed: {describe_error(error)}"
            ) from error
        self._unopened.discard(name)
        return log

    def _open_or_create(
        self,
        folder: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        now_ms: int,
        is_replicated: bool,
    ) -> Log:
        name = (topic, partition)
        stored_id = read_topic_id(self._files, folder) if self._files.is_directory(folder) else None
        if topic_id == ZERO_UUID and stored_id is not None:
            # The cluster's metadata has no id of the topic, because an old tool has written it.
            topic_id = stored_id
        if stored_id not in (None, topic_id, ZERO_UUID):
            self.set_aside(topic, partition)
            stored_id = None
        if stored_id is None:
            # The checkpoints of a deleted log of that name must not apply to the new one.
            self._unopened.discard(name)
            self.checkpoints.write_without(name)
            return Log.create(self._files, folder, topic, partition, topic_id, config, cache=self._cache)
        convert_legacy(self._files, folder, config.max_decompressed_bytes, may_be_torn=not self.clean_shutdown)
        cleaner_offset = self.checkpoints.cleaner_offsets.get(name)
        log = Log.open(
            self._files,
            folder,
            topic,
            partition,
            topic_id,
            config,
            clean_shutdown=self.clean_shutdown,
            recovery_point=self.checkpoints.recovery_points.get(name, 0),
            log_start_offset=self.checkpoints.log_start_offsets.get(name, 0),
            now_ms=now_ms,
            cleaner_offset=cleaner_offset,
            high_watermark=self.checkpoints.high_watermarks.get(name, 0) if is_replicated else None,
            cache=self._cache,
        )
        if log.cleaner_offset != cleaner_offset:
            self.save_cleaner_offset(log)
        if self.checkpoints.recovery_points.get(name, 0) > log.log_end_offset:
            # A crash came between a truncation and its checkpoint. Later batches are not on the disk up to the old point.
            self.checkpoint([log], {name: self.checkpoints.high_watermarks.get(name, 0)})
        if stored_id == ZERO_UUID and name not in self.checkpoints.recovery_points:
            # The process that created it ended before its first flush. Older Kafkas, too, wrote checkpoints of all their logs.
            log.maintenance.note_new()
        return log

    def find_high_watermark(self, log: Log) -> OffsetPosition:
        """Return the checkpointed high watermark of an opened log, with its place; at most the log's end.

        Without an entry nothing is known to be replicated: it is the log start offset. Raises KafkaError
        KAFKA_STORAGE_ERROR or CORRUPT_MESSAGE.
        """
        offset = self.checkpoints.high_watermarks.get((log.topic, log.partition), 0)
        return log.reader.locate(max(offset, log.log_start_offset))

    def delete_log(self, log: Log) -> None:
        """Rename a partition's folder, so that `remove_deleted` removes it."""
        log.release()
        self.checkpoints.forget((log.topic, log.partition))
        rename_partition_folder(self._files, self.path, log.directory, DELETE_SUFFIX)

    def set_aside(self, topic: str, partition: int) -> str:
        """Rename the folder of a partition without a topic, as Kafka does; returns its new name."""
        self._unopened.discard((topic, partition))
        return rename_partition_folder(self._files, self.path, self.folder(topic, partition), STRAY_SUFFIX)

    def set_log_aside(self, log: Log) -> str:
        """Close an open log and rename its folder as `set_aside` does; returns its new name."""
        log.release()
        return self.set_aside(log.topic, log.partition)

    def set_stray_aside(self, topic: str, partition: int) -> str | None:
        """As `set_aside`, but return None for a folder with a partition's name and no log in it."""
        is_log = has_segment_files(self._files, self.folder(topic, partition))
        return self.set_aside(topic, partition) if is_log else None

    def remove_deleted(self, most: int | None = None) -> bool:
        """Remove the folders of deleted partitions, at most `most`; returns whether any are left."""
        return remove_deleted_folders(self._files, self.path, most)

    # --- copies of partitions that move here ---

    def new_copy(self, source: Log) -> LogCopy:
        """Return an empty copy of a log of another directory, with Kafka's name for the folder. [loop]"""
        folder = f"{self.folder(source.topic, source.partition)}{make_random_ending(FUTURE_SUFFIX)}"
        return LogCopy(self._files, source, folder, self._cache)

    def adopt(self, copy: LogCopy, high_watermark: int | None = None) -> Log:
        """Complete a copy and make it this directory's log, which the last step makes durable.

        Without a `high_watermark`, everything in it counts as replicated.
        The checkpoints come first: a crash may leave two logs of that name, and both have to be valid.
        """
        copy.complete()
        topic, partition = name = copy.source.topic, copy.source.partition
        folder = self.folder(topic, partition)
        if self._files.is_directory(folder):
            self.set_aside(topic, partition)
        checkpoints = self.checkpoints
        checkpoints.include(name)
        checkpoints.recovery_points[name] = copy.end_offset
        checkpoints.high_watermarks[name] = copy.end_offset if high_watermark is None else high_watermark
        checkpoints.note_log_start_offset(copy.source)
        checkpoints.note_cleaner_offset(copy.source)
        checkpoints.write()
        self._files.rename(copy.directory, folder)
        self._files.sync_directory(self.path)
        return copy.open(folder)

    def discard(self, copy: LogCopy) -> None:
        """Remove an abandoned copy."""
        copy.close()
        if self._files.is_directory(copy.directory):
            self.remove_copy(copy.directory)

    def find_copies(self) -> dict[str, tuple[str, int]]:
        """Return the folders of copies that an earlier process has left, with their partitions."""
        return find_copies(self._files, self.path)

    def remove_copy(self, folder: str) -> None:
        """Remove a copy's folder."""
        rename_partition_folder(self._files, self.path, folder, DELETE_SUFFIX)
        self.remove_deleted()

    def set_copy_aside(self, folder: str) -> str:
        """Rename the folder of a copy that may be the only one of its partition; returns its new name."""
        return rename_partition_folder(self._files, self.path, folder, STRAY_SUFFIX)

    def rank_copy(self, topic: str, partition: int) -> tuple[int, int, int, int]:
        """Return a value that is larger for the newer of two copies of a log.

        It is (base offset and size of the last segment, recovery point, log start offset). The recovery point decides
        between equal sizes: an adopted copy was synced, but the older log may be torn.
        """
        name, checkpoints = (topic, partition), self.checkpoints
        offsets = checkpoints.recovery_points.get(name, 0), checkpoints.log_start_offsets.get(name, 0)
        return *find_last_segment(self._files, self.folder(*name)), *offsets

    # --- checkpoints ---

    def checkpoint(self, logs: Iterable[Log], high_watermarks: Mapping[tuple[str, int], int] | None = None) -> None:
        """Write the checkpoints of some logs; the entries of others stay.

        Without `high_watermarks`, a log counts as replicated to its end.
        """
        for log in logs:
            # A new log may not be on the disk yet: without an entry, a start recovers it from 0.
            if not log.is_new:
                self.checkpoints.note_offsets(
                    log, (high_watermarks or {}).get((log.topic, log.partition), log.log_end_offset)
                )
                self.checkpoints.note_cleaner_offset(log)
        self.checkpoints.write()

    def save_truncation(self, log: Log, high_watermark: int) -> None:
        """Write the checkpoints of a log that was truncated or started over, before it is appended to."""
        self.checkpoint([log], {(log.topic, log.partition): high_watermark})

    def save_log_start_offset(self, log: Log) -> None:
        """Write the checkpoint of a log's start offset."""
        self.checkpoints.write_log_start_offset(log)

    def save_cleaner_offset(self, log: Log) -> None:
        """Write the checkpoint of a log's last compaction."""
        self.checkpoints.write_cleaner_offset(log)

    def close(self, logs: Iterable[Log], high_watermarks: Mapping[tuple[str, int], int] | None = None) -> None:
        """Shut down: close the logs, write the checkpoints and the clean shutdown marker, release the lock.

        For `high_watermarks` see `checkpoint`.
        If any of it fails, the marker is not written and the next start recovers.
        """
        logs = list(logs)
        try:
            for log in logs:
                if not log.offline:
                    log.close()
            self.checkpoint(logs, high_watermarks)
            if all(log.state.closed for log in logs) and not self._unopened:
                replace_file(self._files, os.path.join(self.path, CLEAN_SHUTDOWN_FILE), _CLEAN_SHUTDOWN_CONTENTS)
        finally:
            self._lock.release()

    def release(self) -> None:
        """Release the lock without writing anything: the next start recovers."""
        self._lock.release()
