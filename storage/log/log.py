"""One partition's log: segments in a folder, with Kafka's file names and formats.

Operations are of two kinds. A *loop* operation touches memory and the page cache only and may run on the reactor
thread. A *disk* operation may wait for the disk and runs on the log directory's own thread; unless it says otherwise,
loop operations may run at the same time.

A write that cannot be undone, a failed sync or a broken invariant sets `offline`. From then on appends, reads and disk
operations raise KafkaError KAFKA_STORAGE_ERROR, until the log is opened again.
"""

from __future__ import annotations

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.log.appender import AppendResult, LogAppender, RollNeededError
from kafkacompat.storage.log.committed_reader import CommittedReader
from kafkacompat.storage.log.compaction import LogCompaction
from kafkacompat.storage.log.examiner import LogExaminer
from kafkacompat.storage.log.follower_appender import FetchedAppend, FollowerAppender
from kafkacompat.storage.log.leader_epochs import LeaderEpochs
from kafkacompat.storage.log.maintenance import LogMaintenance
from kafkacompat.storage.log.reader import LogReader
from kafkacompat.storage.log.recovery import create_empty_log, load_log
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.log.trimmer import LogTrimmer
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.state import ProducerState
from kafkacompat.storage.segment.positions import OffsetPosition
from kafkacompat.storage.segment.segments import Segments
from kafkacompat.storage.segment.shared_files import SegmentCache
from kafkacompat.storage.segment.timestamp_search import FoundRecord

__all__ = ["AppendResult", "FetchedAppend", "FoundRecord", "Log", "OffsetPosition", "RollNeededError"]


class Log:
    """One partition's log: its state, and the parts that work on it.

    The methods of every produce and fetch are bound here once, so that they need no further call. Code that reads the
    state for every batch uses `state` itself.
    """

    __slots__ = (
        "__weakref__",
        "append",
        "append_fetched",
        "append_marker",
        "committed",
        "compaction",
        "examiner",
        "maintenance",
        "read",
        "read_committed",
        "reader",
        "state",
        "trimmer",
    )

    def __init__(self, state: LogState) -> None:
        self.state = state
        appender = LogAppender(state)
        self.append = appender.append
        self.append_marker = appender.append_marker
        self.append_fetched = FollowerAppender(state).append_fetched
        self.examiner = LogExaminer(state)
        self.reader = LogReader(state, self.examiner)
        self.read = self.reader.read
        self.committed = CommittedReader(state, self.reader, self.examiner)
        self.read_committed = self.committed.read_committed
        self.maintenance = LogMaintenance(state)
        self.trimmer = LogTrimmer(state)
        self.compaction = LogCompaction(state)

    def __repr__(self) -> str:
        return repr(self.state)

    @classmethod
    def create(
        cls,
        files: Files,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        *,
        cache: SegmentCache | None = None,
    ) -> Log:
        """Create the partition's folder with an empty log; `make_durable` and the first flush put it on the disk. [disk]"""
        cache = SegmentCache() if cache is None else cache
        files.make_directory(directory)
        loaded = create_empty_log(files, directory, cache)
        log = cls(LogState(files, directory, topic, partition, topic_id, config, loaded, cache))
        log.maintenance.note_new()
        return log

    @classmethod
    def open(
        cls,
        files: Files,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        *,
        clean_shutdown: bool,
        recovery_point: int,
        log_start_offset: int,
        now_ms: int,
        cleaner_offset: int | None = None,
        high_watermark: int | None = None,
        cache: SegmentCache | None = None,
    ) -> Log:
        """Open an existing log, with recovery unless the last shutdown was clean. [disk]

        `recovery_point`, `log_start_offset` and `cleaner_offset` are the directory's checkpoints for it; without one, 0, 0
        and None. Without a `high_watermark`, everything in the log counts as replicated.
        """
        cache = SegmentCache() if cache is None else cache
        loaded = load_log(
            files,
            directory,
            config,
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            cleaner_offset=cleaner_offset or 0,
            now_ms=now_ms,
            cache=cache,
            high_watermark=high_watermark,
        )
        state = LogState(files, directory, topic, partition, topic_id, config, loaded, cache)
        if cleaner_offset is not None:
            # Records that replace lost ones were never compacted: an old value would outlive a new tombstone.
            state.cleaner_offset = min(cleaner_offset, state.log_end_offset)
        # A process that was killed may have created files whose names are not on the disk yet.
        state.folder_is_synced = clean_shutdown
        return cls(state)

    # --- the life of a log ---

    def flush(self) -> int:
        """See LogMaintenance.flush. [disk]"""
        return self.maintenance.flush()

    def close(self) -> None:
        """See LogMaintenance.close. [disk; nothing else meanwhile]"""
        self.maintenance.close()

    def release(self) -> None:
        """See LogMaintenance.release. [loop]"""
        self.maintenance.release()

    # --- the state, as callers see it; see LogState ---

    def end_position(self) -> OffsetPosition:
        """See LogState.end_position. [loop]"""
        return self.state.end_position()

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches. [loop]"""
        return self.state.segments.size_bytes

    @property
    def directory(self) -> str:
        """The folder of the partition."""
        return self.state.directory

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.state.topic

    @property
    def partition(self) -> int:
        """The partition's number in its topic."""
        return self.state.partition

    @property
    def topic_id(self) -> bytes:
        """The topic's id, 16 bytes."""
        return self.state.topic_id

    @property
    def is_new(self) -> bool:
        """Whether the folder itself may not be on the disk yet."""
        return self.state.is_new

    @property
    def segments(self) -> Segments:
        """The segments, oldest first."""
        return self.state.segments

    @property
    def log_start_offset(self) -> int:
        """The first offset that consumers may read."""
        return self.state.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.state.log_end_offset

    @property
    def recovery_point(self) -> int:
        """Everything before this offset would survive a power failure."""
        return self.state.recovery_point

    @property
    def leader_epochs(self) -> LeaderEpochs:
        """Where each leader epoch begins."""
        return self.state.leader_epochs

    @property
    def producer_state(self) -> ProducerState:
        """The idempotent producers and their open transactions."""
        return self.state.producer_state

    @property
    def config(self) -> LogConfig:
        """The topic's configs."""
        return self.state.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self.state.config = config

    @property
    def cleaner_offset(self) -> int | None:
        """Where the last compaction stopped; None before the first one."""
        return self.state.cleaner_offset

    @cleaner_offset.setter
    def cleaner_offset(self, cleaner_offset: int | None) -> None:
        self.state.cleaner_offset = cleaner_offset

    @property
    def offline(self) -> bool:
        """Whether the log can be used no more."""
        return self.state.offline

    def take_offline(self, reason: str) -> None:
        """Reject every operation from now on; *reason* becomes a part of each rejection. Any thread may call it."""
        self.state.take_offline(reason)
