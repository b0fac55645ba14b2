"""A partition of this broker, as a fetcher sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from kafkacompat.timers import Clock, now_ms

if TYPE_CHECKING:
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.replication.replica_fetcher_manager import ReplicaFetcherManager
    from kafkacompat.wire.primitives import Buffer


class LocalFollower:
    """Implements `FollowerReplica` over a `Partition`."""

    def __init__(self, partition: Partition, replicas: ReplicaManager, clock: Clock) -> None:
        self.partition = partition
        self._replicas = replicas
        self._clock = clock

    def __repr__(self) -> str:
        return repr(self.partition)

    @property
    def topic(self) -> str:
        """See FollowerReplica."""
        return self.partition.topic

    @property
    def topic_id(self) -> bytes:
        """See FollowerReplica."""
        return self.partition.log.topic_id

    @property
    def index(self) -> int:
        """See FollowerReplica."""
        return self.partition.index

    @property
    def log_start_offset(self) -> int:
        """See FollowerReplica."""
        return self.partition.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """See FollowerReplica."""
        return self.partition.follower.log_end_offset

    @property
    def reported_end_offset(self) -> int:
        """See FollowerReplica."""
        return self.partition.follower.reported_end_offset

    @property
    def last_epoch(self) -> int:
        """See FollowerReplica."""
        return self.partition.follower.latest_epoch

    @property
    def high_watermark(self) -> int:
        """See FollowerReplica."""
        return self.partition.high_watermark.offset

    def append_fetched(
        self, records: Buffer, leader_high_watermark: int, leader_log_start_offset: int
    ) -> Deferred[Any] | object:
        """See FollowerReplica."""
        return self.partition.follower.append_fetched(
            records, leader_high_watermark, leader_log_start_offset, now_ms(self._clock)
        )

    def truncate(self, offset: int) -> Deferred[None]:
        """See FollowerReplica."""
        return self._replicas.truncate(self.partition, offset)

    def start_over_at(self, offset: int) -> Deferred[None]:
        """See FollowerReplica."""
        return self._replicas.start_over_at(self.partition, offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """See FollowerReplica."""
        return self.partition.follower.end_offset_for_epoch(epoch)


class LocalFollowing:
    """Implements `Following`: the replicas of this broker, fetched by a `ReplicaFetcherManager`."""

    def __init__(
        self, fetchers: ReplicaFetcherManager, find_replicas: Callable[[], ReplicaManager], clock: Clock
    ) -> None:
        self._fetchers = fetchers
        self._find_replicas = find_replicas
        self._clock = clock
        self._followers: dict[tuple[str, int], LocalFollower] = {}

    def follow(self, partition: Partition, leader_id: int, leader_epoch: int) -> None:
        """See Following."""
        key = (partition.topic, partition.index)
        follower = self._followers.get(key)
        if follower is None or follower.partition is not partition:
            follower = self._followers[key] = LocalFollower(partition, self._find_replicas(), self._clock)
        self._fetchers.follow(follower, leader_id, leader_epoch)

    def stop(self, topic: str, index: int) -> Deferred[None]:
        """See Following."""
        self._followers.pop((topic, index), None)
        return self._fetchers.stop(topic, index)
