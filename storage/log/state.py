"""What a log consists of, and what happens to it when the disk fails."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from kafkacompat.storage.files.filesystem import Files, SyncError
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.log.recovery import LoadedLog
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.snapshots import Snapshots
from kafkacompat.storage.segment.reader import OffsetPosition, RecentBatches
from kafkacompat.storage.segment.segment_file import SegmentCache
from kafkacompat.wire.errors import ErrorCode, KafkaError

_PASSING_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


def may_pass(error: OSError) -> bool:
    """Whether what failed may be tried again: a full disk may have room again, and files may be closed.

    After any other error there is no telling, and a failed sync is final whatever its reason.
    """
    return error.errno in _PASSING_ERRORS and not isinstance(error, SyncError)


class LogState:
    """The parts of a log, shared by what appends to it, reads it and maintains it."""

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
        self._files = files
        self._cache = cache
        self._snapshots = Snapshots(files, directory)
        self._recent = RecentBatches()
        self._dirty_since_ms = -1
        self._folder_is_synced = True
        self.is_new = False
        """Whether the folder may not be on the disk yet, and does not say whose it is."""
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        """May be replaced at any time; the next operation goes by the new one."""
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
        """What recovery cut off when the log was opened."""
        self._reason = ""
        self.offline = False
        """Any thread may set it, and none takes it back."""
        self.closed = False
        """Whether the log was closed in good order."""

    def __repr__(self) -> str:
        return f"Log({self.topic}-{self.partition}, offsets {self.log_start_offset} to {self.log_end_offset})"

    def note_new(self) -> None:
        """Let the next flush, or `make_durable`, put the folder on the disk, and in it whose it is."""
        self.is_new = True
        self._folder_is_synced = False

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches. [loop]"""
        return self.segments.size_bytes

    def end_position(self) -> OffsetPosition:
        """The log's end, with its place in the active segment. [loop]"""
        active = self.segments.active
        return OffsetPosition(self.log_end_offset, active.base_offset, active.size_bytes)

    def _offline_error(self) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log in {self.directory} is offline{self._reason}")

    @contextmanager
    def _disk_operation(self, repeatable: bool = False) -> Iterator[None]:
        """What fails in here is never tried again: a sync that failed once may have lost the data (ATC'20).

        Only a `repeatable` operation, which touches nothing that was acknowledged, may fail for a passing reason.
        """
        if self.offline:
            raise self._offline_error()
        try:
            yield
        except OSError as error:
            if not (repeatable and may_pass(error)):
                # The reason first: the reactor thread may find the log offline, and tell, before it is told.
                self._reason = f": {describe_error(error)}"
                self.offline = True
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.directory} failed: {describe_error(error)}"
            ) from error
