"""One partition that this broker has a replica of: as its leader, or as a follower."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol

from twisted.internet.defer import Deferred

from kafkacompat.metadata.topic_names import INTERNAL_TOPICS
from kafkacompat.metrics.partitions import PartitionTraffic
from kafkacompat.partitions.append_queue import AppendQueue
from kafkacompat.partitions.fetch_watchers import FetchWatchers
from kafkacompat.partitions.follower import FollowerPartition
from kafkacompat.partitions.leadership import LeaderState
from kafkacompat.partitions.partition_appender import PartitionAppender
from kafkacompat.partitions.partition_reader import PartitionRead, PartitionReader
from kafkacompat.partitions.partition_state import PartitionHost, PartitionState
from kafkacompat.partitions.replica_progress import ReplicaProgress
from kafkacompat.storage.log.log import FoundRecord, Log, OffsetPosition

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.disk import Disk
    from kafkacompat.partitions.cluster_view import ClusterView
    from kafkacompat.partitions.fetch_sessions import WantedPartition
    from kafkacompat.partitions.fetch_watchers import FetchWatcher
    from kafkacompat.partitions.partition_appender import Appended
    from kafkacompat.partitions.replica_progress import FetchingReplica
    from kafkacompat.storage.intake.validation import CheckedBatch
    from kafkacompat.storage.producers.transaction_marker import Marker
    from kafkacompat.storage.producers.verification import Guard
    from kafkacompat.wire.errors import KafkaError
    from kafkacompat.wire.primitives import Buffer


class AppendBatch(Protocol):
    """Appends one batch: see AppendQueue.append."""

    def __call__(
        self, records: Buffer | CheckedBatch, now_ms: int, *, from_client: bool = True, guard: Guard | None = None
    ) -> Appended:
        """Append a batch, or raise KafkaError."""


class Partition:
    """One replica of a partition: a state, and the parts that work on it.

    Which methods serve depends on the role. ``append`` puts a batch into the leader's log. ``append_to_all`` also waits
    until the in-sync replicas have it; without other replicas it is the same. Both are that of the `AppendQueue`, and
    ``read`` that of the `PartitionReader`, where the role allows it: without a method in between, each batch costs a
    call less.
    """

    append: AppendBatch
    append_to_all: AppendBatch

    def __init__(
        self,
        opened: Log,
        host: PartitionHost,
        leader_epoch: int,
        high_watermark: OffsetPosition | None = None,
    ) -> None:
        """Lead the partition as its only replica; with a *high_watermark* wait for a role (`become_leader` …).

        `LogReader.locate` gives the position of a high watermark.
        """
        self.state = state = PartitionState(opened, host, leader_epoch, high_watermark)
        self.watchers = FetchWatchers(state)
        self.progress = ReplicaProgress(state, self.watchers)
        self._reader = PartitionReader(state)
        self.traffic = PartitionTraffic()
        self._appender = PartitionAppender(state, self.watchers, self.progress)
        self._queue = AppendQueue(state, self._appender)
        self.follower = FollowerPartition(state, self.watchers, self._queue)
        self.read = self._reader.read
        self.is_internal = opened.topic in INTERNAL_TOPICS
        self._role_changed()
        if state.leading is not None:
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
    def is_leader(self) -> bool:
        """Whether this broker leads the partition."""
        return self.state.leading is not None

    @property
    def is_replicated(self) -> bool:
        """Whether this broker leads the partition and other brokers follow."""
        return self.state.is_replicated

    @property
    def closed(self) -> bool:
        """Whether the partition was deleted or its log directory failed."""
        return self.state.refusal is not None

    # The role

    def become_leader(
        self,
        cluster: ClusterView,
        leader_epoch: int,
        replicas: Collection[int],
        in_sync: Collection[int],
        partition_epoch: int,
        now_ms: int,
    ) -> bool:
        """Lead the partition with these replicas, as the controller says; return whether the leader epoch is new.

        An older epoch than the known one changes nothing. Within the same leader epoch the replicas and the in-sync set
        are taken over. A new leader epoch begins at the log's end; the high watermark stays until the followers have
        fetched. A follower must not be fetching or truncating any more: what it holds in line is refused.
        """
        assert not self.is_truncating, f"{self!r} is being truncated"
        state = self.state
        if partition_epoch < state.partition_epoch or leader_epoch < state.leader_epoch:
            return False
        end_offset, before = state.log.log_end_offset, state.leading
        is_new_epoch = before is None or leader_epoch > state.leader_epoch
        self.progress.cluster = cluster
        # A partition that was opened as the only replica does not know its broker's id yet.
        if before is None or is_new_epoch or before.node_id != cluster.node_id:
            state.log.leader_epochs.assign(leader_epoch, end_offset)
            state.leading = LeaderState.begin(
                cluster.node_id,
                replicas,
                in_sync,
                partition_epoch,
                epoch_start_offset=end_offset,
                now_ms=now_ms,
                # Another broker led in an epoch that is left out, and the followers may have cut their logs to its log.
                before=before if leader_epoch <= state.leader_epoch + 1 else None,
            )
        else:
            before.reassign(replicas, in_sync, partition_epoch)
        if before is None:
            state.synced_offset = 0
            self._refuse_waiting(state.not_leader())
            self._appender.sync_rest()
        state.leader_epoch, state.leader_id = leader_epoch, cluster.node_id
        self._role_changed()
        self.progress.take_in_sync(now_ms)
        if is_new_epoch:
            self.watchers.wake()
        return is_new_epoch

    def become_follower(self, leader_id: int, leader_epoch: int, partition_epoch: int = -1) -> bool:
        """Follow another broker, -1 for none yet; return whether the leader epoch is new.

        Everything that waits here for the leader fails with NOT_LEADER_OR_FOLLOWER. An older leader or partition epoch
        than the known one changes nothing.
        """
        state = self.state
        if leader_epoch < state.leader_epoch or -1 < partition_epoch < state.partition_epoch:
            return False
        is_new_epoch = leader_epoch > state.leader_epoch or state.leading is not None
        state.leader_epoch, state.leader_id = leader_epoch, leader_id
        state.partition_epoch = max(partition_epoch, state.partition_epoch)
        if state.leading is not None:
            state.leading = None
            state.synced_offset = 0
            self._role_changed()
            self._refuse_waiting(state.not_leader())
            self._appender.sync_rest()
        if is_new_epoch:
            self.watchers.wake()
        return is_new_epoch

    def note_reassignment(self, *, is_added: bool) -> None:
        """Note whether a reassignment that has not ended adds this replica; called before each role that the controller gives."""
        if self.state.is_added != is_added:
            self.state.is_added = is_added
            self.state.count_bytes()

    def _role_changed(self) -> None:
        state = self.state
        state.is_replicated = state.leading is not None and bool(state.leading.followers)
        self._appender.role_changed()
        state.count_bytes()
        self.traffic.note_role(state.leading is not None, state.log)
        if state.leading is None:
            self.append = self.append_to_all = self._refuse_append
        else:
            self.append = self._queue.append
            self.append_to_all = self._append_to_all if state.is_replicated else self._queue.append

    def _refuse_append(
        self, records: Buffer | CheckedBatch, now_ms: int, *, from_client: bool = True, guard: Guard | None = None
    ) -> Appended:
        raise self.state.refusal or self.state.not_leader()

    def _refuse_waiting(self, refusal: KafkaError) -> None:
        self._appender.refuse(refusal)
        self.follower.refuse(refusal)
        self._queue.refuse(refusal)
        self.progress.refuse(refusal)

    def check_in_sync(self, now_ms: int) -> None:
        """See ReplicaProgress.check_in_sync."""
        self.progress.check_in_sync(now_ms)

    def note_lost_brokers(self, lost: AbstractSet[int], now_ms: int) -> None:
        """See ReplicaProgress.note_lost_brokers."""
        self.progress.note_lost_brokers(lost, now_ms)

    # Appending

    def check_enough_in_sync(self) -> None:
        """See ReplicaProgress.check_enough_in_sync."""
        self.progress.check_enough_in_sync()

    def wait_for_replicas(self, end_offset: int) -> Deferred[None] | None:
        """See ReplicaProgress.wait_for_replicas."""
        return self.progress.wait_for_replicas(end_offset)

    def _append_to_all(
        self, records: Buffer | CheckedBatch, now_ms: int, *, from_client: bool = True, guard: Guard | None = None
    ) -> Appended:
        self.progress.check_enough_in_sync()
        return self._until_replicated(self._queue.append(records, now_ms, from_client=from_client, guard=guard))

    def _until_replicated(self, appended: Appended) -> Appended:
        if isinstance(appended, Deferred):
            return appended.addCallback(self._until_replicated)
        waiting = self.progress.wait_for_replicas(appended.last_offset + 1)
        return appended if waiting is None else waiting.addCallback(lambda _: appended)

    def append_marker(self, marker: Marker, now_ms: int) -> Appended:
        """See AppendQueue.append_marker; as `append_to_all`, it also waits for the in-sync replicas."""
        state = self.state
        if state.leading is None:
            raise state.not_leader()
        if not state.is_replicated:
            return self._queue.append_marker(marker, now_ms)
        self.progress.check_enough_in_sync()
        return self._until_replicated(self._queue.append_marker(marker, now_ms))

    def guard(self, producer_id: int, epoch: int, sequence: int, *, begins_at_zero: bool) -> Guard | None:
        """Return the guard that a transactional batch must carry once its coordinator has verified it (KIP-890).

        None when the transaction is open here already. ``begins_at_zero``: the producer's client takes a new epoch for
        each transaction. Raises KafkaError INVALID_PRODUCER_EPOCH or NOT_LEADER_OR_FOLLOWER.
        """
        if self.state.leading is None:
            raise self.state.not_leader()
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

    def check_leads(self, current_leader_epoch: int) -> None:
        """See PartitionReader.check_leads."""
        self._reader.check_leads(current_leader_epoch)

    def check_offsets_available(self, now_ms: int) -> None:
        """See PartitionReader.check_offsets_available."""
        self._reader.check_offsets_available(now_ms)

    def read_as_replica(
        self,
        replica: FetchingReplica,
        wanted: WantedPartition,
        max_bytes: int,
        *,
        at_least_one_batch: bool,
        fetched_ms: int | None,
    ) -> PartitionRead:
        """Return what a follower fetches: everything up to the log's end.

        With ``fetched_ms``, the time of its request, the fetch counts: it shows which part of the log the follower has.
        Raises KafkaError as `check_leads` and ReplicaProgress.check_replica do, and the errors of
        PartitionReader.read_to_end.
        """
        offset, state = wanted.fetch_offset, self.state
        self._reader.check_leads(wanted.current_leader_epoch)
        self.progress.check_replica(replica, wanted.current_leader_epoch)
        if self.progress.is_throttled(replica):
            max_bytes, at_least_one_batch = 0, False
        read = self._reader.read_to_end(
            offset, max_bytes, at_least_one_batch=at_least_one_batch, last_fetched_epoch=wanted.last_fetched_epoch
        )
        self.progress.count_sent(read.size_bytes)
        if fetched_ms is None or read.diverging_epoch is not None:
            return read
        self.progress.note_fetch(replica, offset, wanted.log_start_offset, fetched_ms)
        # The follower learns at once what its own fetch has made visible.
        return read._replace(high_watermark=state.high_watermark.offset, last_stable_offset=self.last_stable_offset)

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

    def watch_log_end(self, watcher: FetchWatcher) -> None:
        """See FetchWatchers.watch_log_end."""
        self.watchers.watch_log_end(watcher)

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
        self.traffic.update(state.log)
        state.log, state.host = moved, host
        state.count_bytes()
        self.traffic.begin_at(moved)
        if state.leading is None or state.is_replicated:
            # The copy may have other segments than the log.
            state.high_watermark = moved.reader.find_position(state.high_watermark.offset)
        self._appender.synced(moved.end_position())
        if state.leading is None:
            self.follower.synced(moved.end_position())

    def close_to_clients(self, refusal: KafkaError) -> None:
        """Refuse everything that waits: the partition was deleted or its log directory failed."""
        self.state.refusal = refusal
        self.state.use_account(None)
        self._refuse_waiting(refusal)
        self.watchers.wake()
