"""The state of one log, which the parts of the log share, and what happens to it when the disk fails."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from kafkacompat.storage.files.filesystem import Files, SyncError
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.log.recovery import LoadedLog
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.snapshots import Snapshots
from kafkacompat.storage.segment.positions import OffsetPosition, RecentBatches
from kafkacompat.storage.segment.segment import TornSegmentError
from kafkacompat.storage.segment.shared_files import SegmentCache
from kafkacompat.wire.errors import ErrorCode, KafkaError

_TRANSIENT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


def is_transient(error: OSError) -> bool:
    """Whether the failed operation may be retried: a full disk can get room again, and open files can be closed.

    Any other error may have lost data, and a failed sync is final whatever its reason.
    """
    return error.errno in _TRANSIENT_ERRORS and not isinstance(error, SyncError)


class LogState:
    """What one log consists of and knows. Its parts change these attributes; nothing else does unless it says so."""

    __slots__ = (
        "_offline_reason",
        "cache",
        "cleaner_offset",
        "closed",
        "config",
        "directory",
        "dirty_since_ms",
        "files",
        "folder_is_synced",
        "is_new",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "offline",
        "partition",
        "producer_state",
        "recent_batches",
        "recovery_point",
        "segments",
        "snapshots",
        "topic",
        "topic_id",
        "truncated_bytes",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        loaded: LoadedLog,
        cache: SegmentCache,
    ) -> None:
        self.files = files
        self.cache = cache
        self.snapshots = Snapshots(files, directory)
        self.recent_batches = RecentBatches()
        """Where the last batches lie in the active segment; cleared whenever that is another one or is cut."""
        self.dirty_since_ms = -1
        """Time of the first append since the last flush; -1 when there was none."""
        self.folder_is_synced = True
        """Whether the names of all the log's files are on the disk."""
        self.is_new = False
        """Whether the folder itself may not be on the disk yet, and has no partition.metadata."""
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        """May be replaced at any time; the next operation uses the new one."""
        self.segments = loaded.segments
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        """Everything before this offset would survive a power failure."""
        self.cleaner_offset: int | None = None
        """Where the last compaction stopped; None before the first one."""
        self.leader_epochs = loaded.leader_epochs
        self.producer_state = loaded.producer_state
        self.truncated_bytes = loaded.truncated_bytes
        """Bytes that recovery cut off when the log was opened."""
        self.offline = False
        """Any thread may set it, by `take_offline`; nothing resets it."""
        self._offline_reason = ""
        self.closed = False
        """Whether the log was closed in good order."""

    def __repr__(self) -> str:
        return f"Log({self.topic}-{self.partition}, offsets {self.log_start_offset} to {self.log_end_offset})"

    def end_position(self) -> OffsetPosition:
        """Return the log's end, with its place in the active segment. [loop]"""
        active = self.segments.active
        return OffsetPosition(self.log_end_offset, active.base_offset, active.size_bytes)

    def offline_error(self) -> KafkaError:
        """Return the error that operations of an offline log raise."""
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"the log in {self.directory} is offline{self._offline_reason}"
        )

    def take_offline(self, reason: str) -> None:
        """Reject every operation from now on; *reason* becomes a part of each rejection. Any thread may call it."""
        if self.offline:
            return
        # The reason first: another thread may find the log offline at once.
        self._offline_reason = f": {reason}"
        self.offline = True

    def fail_write(self, error: OSError) -> KafkaError:
        """Return the error of an append whose write failed; the log stays online if that can be repeated. [loop]"""
        if isinstance(error, TornSegmentError) or not is_transient(error):
            self.take_offline(describe_error(error))
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"writing to {self.directory} failed: {describe_error(error)}")

    @contextmanager
    def disk_operation(self, repeatable: bool = False) -> Iterator[None]:
        """Turn an OSError into KafkaError KAFKA_STORAGE_ERROR, and take the log offline for good.

        A failed operation is never retried: a sync that failed once may have lost the data (Rebello et al., "Can
        Applications Recover from fsync Failures?", ATC 2020). Only a `repeatable` operation, which changes nothing that
        was acknowledged, leaves the log online after a transient error.
        """
        if self.offline:
            raise self.offline_error()
        try:
            yield
        except OSError as error:
            if not (repeatable and is_transient(error)):
                self.take_offline(describe_error(error))
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.directory} failed: {describe_error(error)}"
            ) from error
