"""One partition that this broker leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.metadata.topic_names import INTERNAL_TOPICS
from kafkacompat.partitions.append_queue import AppendQueue
from kafkacompat.partitions.fetch_watchers import FetchWatchers
from kafkacompat.partitions.follower import FollowerPartition
from kafkacompat.partitions.partition_appender import PartitionAppender
from kafkacompat.partitions.partition_reader import PartitionRead, PartitionReader
from kafkacompat.partitions.partition_state import PartitionHost, PartitionState
from kafkacompat.storage.log.log import FoundRecord, Log, OffsetPosition

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from kafkacompat.disk import Disk
    from kafkacompat.partitions.fetch_watchers import FetchWatcher
    from kafkacompat.partitions.partition_appender import Appended
    from kafkacompat.storage.producers.transaction_marker import Marker
    from kafkacompat.storage.producers.verification import Guard
    from kafkacompat.wire.errors import KafkaError


class Partition:
    """The leader's side of one partition: a state, and the parts that work on it.

    Without a ``high_watermark`` everything in the log is replicated, as on a single node. ``append`` is that of its `AppendQueue`, and ``read`` that of its `PartitionReader`: without a method in between,
    each batch costs a call less.
    """

    def __init__(
        self, opened: Log, host: PartitionHost, leader_epoch: int, high_watermark: OffsetPosition | None = None
    ) -> None:
        self.state = state = PartitionState(opened, host, leader_epoch, high_watermark)
        self.watchers = FetchWatchers(state)
        self._reader = PartitionReader(state)
        self._appender = PartitionAppender(state, self.watchers)
        self._queue = AppendQueue(state, self._appender)
        self.follower = FollowerPartition(state, self.watchers, self._queue)
        self.append = self._queue.append
        self.read = self._reader.read
        self.is_internal = opened.topic in INTERNAL_TOPICS
        # Clients learn the new epoch from now on, so it needs a start offset before its first record.
        opened.leader_epochs.assign(leader_epoch, opened.log_end_offset)

    def __repr__(self) -> str:
        return repr(self.state)

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.state.log.topic

    @property
    def index(self) -> int:
        """The partition's number in its topic."""
        return self.state.log.partition

    @property
    def log(self) -> Log:
        """The partition's log; another one after a move."""
        return self.state.log

    @property
    def disk(self) -> Disk:
        """The thread that waits for the log's disk."""
        return self.state.disk

    @property
    def leader_epoch(self) -> int:
        """The epoch in which this broker leads the partition."""
        return self.state.leader_epoch

    @property
    def high_watermark(self) -> OffsetPosition:
        """The end of what consumers may see."""
        return self.state.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The end of what read_committed consumers may see: every transaction before it has ended."""
        return self.state.stable_position().offset

    @property
    def closed(self) -> bool:
        """Whether the partition was deleted or its log directory failed."""
        return self.state.refusal is not None

    # Appending

    def append_marker(self, marker: Marker, now_ms: int) -> Appended:
        """See AppendQueue.append_marker."""
        return self._queue.append_marker(marker, now_ms)

    def guard(self, producer_id: int, epoch: int, sequence: int, *, begins_at_zero: bool) -> Guard | None:
        """Return the guard that a transactional batch must carry once its coordinator has verified it (KIP-890).

        None when the transaction is open here already. ``begins_at_zero``: the producer's client takes a new epoch for
        each transaction. Raises KafkaError INVALID_PRODUCER_EPOCH.
        """
        return self.state.log.producer_state.require_guard(producer_id, epoch, sequence, begins_at_zero)

    @property
    def holds_appends(self) -> bool:
        """Whether appends wait in line; an append that waits otherwise is in the log and only not synced yet."""
        return self._queue.is_holding

    @property
    def waits_long(self) -> bool:
        """Whether the disk that appends wait for has been busy for longer than usual."""
        return self.state.host.commit.is_slow

    @property
    def is_truncating(self) -> bool:
        """Whether the disk thread cuts the log, or will soon, so that nothing else may change its segments."""
        return self._queue.works > 0

    def roll(self) -> None:
        """Start a new segment, unless one is being made; appends wait in line until it is in use."""
        self._queue.roll()

    def flush(self) -> Deferred[None]:
        """Put everything appended so far on the disk."""
        return self.disk.run(self.log.flush).addCallbacks(lambda _: None, self._flush_failed)

    def _flush_failed(self, failure: Failure) -> Failure:
        self.state.report_disk_failure(failure)
        return failure

    def report_disk_failure(self, failure: Failure) -> None:
        """Report a failed disk operation; if the log can no longer be used, its directory goes offline."""
        self.state.report_disk_failure(failure)

    # Reading

    def check_epoch(self, current_leader_epoch: int) -> None:
        """See PartitionReader.check_epoch."""
        self._reader.check_epoch(current_leader_epoch)

    def end_offset(self, *, committed: bool = False) -> int:
        """See PartitionReader.end_offset."""
        return self._reader.end_offset(committed=committed)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """See PartitionReader.end_of_epoch."""
        return self._reader.end_of_epoch(epoch)

    def read_nothing(self) -> PartitionRead:
        """See PartitionReader.read_nothing."""
        return self._reader.read_nothing()

    def warm(self, offset: int, max_bytes: int = 0, *, committed: bool = False) -> Deferred[None]:
        """See PartitionReader.warm."""
        return self._reader.warm(offset, max_bytes, committed=committed)

    def examine(self, offset: int) -> None:
        """See PartitionReader.examine."""
        self._reader.examine(offset)

    def find_timestamp(self, timestamp: int, *, committed: bool = False) -> Deferred[FoundRecord | None]:
        """See PartitionReader.find_timestamp."""
        return self._reader.find_timestamp(timestamp, committed=committed)

    def find_max_timestamp(self, *, committed: bool = False) -> Deferred[FoundRecord | None]:
        """See PartitionReader.find_max_timestamp."""
        return self._reader.find_max_timestamp(committed=committed)

    def segment_starts(self, now_ms: int) -> list[tuple[int, int]]:
        """See PartitionReader.segment_starts."""
        return self._reader.segment_starts(now_ms)

    # Waiting fetches

    def watch(self, watcher: FetchWatcher, *, committed: bool) -> None:
        """See FetchWatchers.watch."""
        self.watchers.watch(watcher, committed=committed)

    def unwatch(self, watcher: FetchWatcher) -> None:
        """See FetchWatchers.unwatch."""
        self.watchers.unwatch(watcher)

    def wake_fetches(self) -> None:
        """See FetchWatchers.wake."""
        self.watchers.wake()

    # Moving and going away

    def pause(self) -> bool:
        """See AppendQueue.pause."""
        return self._queue.pause()

    def resume(self) -> None:
        """See AppendQueue.resume."""
        self._queue.resume()

    def replace_log(self, moved: Log, host: PartitionHost) -> None:
        """Continue with a copy of the log that holds the same, in another log directory; appends are paused."""
        state = self.state
        moved.config = state.log.config
        moved.trimmer.advance_log_start_offset(state.log.log_start_offset)
        state.host.commit.leave(self._appender)
        state.host.commit.leave(self.follower)
        state.log, state.host = moved, host
        self._appender.synced(moved.end_position())
        self.follower.synced(moved.end_position())

    def close_to_clients(self, refusal: KafkaError) -> None:
        """Refuse everything that waits: the partition was deleted or its log directory failed."""
        self.state.refusal = refusal
        self._appender.refuse(refusal)
        self.follower.refuse(refusal)
        self._queue.refuse(refusal)
        self.watchers.wake()
