"""All partitions that this broker follows, spread over fetchers by leader and number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, gatherResults, succeed

from kafkacompat.replication.fetch_state import FAILED
from kafkacompat.replication.followed_partition import FollowedPartition
from kafkacompat.replication.follower import PartitionKey, key_of
from kafkacompat.replication.leader_fetcher import LeaderFetcher
from kafkacompat.replication.partition_fetch import PartitionFetch
from kafkacompat.wire.java_hash import java_string_hash

if TYPE_CHECKING:
    from kafkacompat.partitions.replication_quota import ReplicationQuota
    from kafkacompat.replication.follower import FollowerReplica, Sender
    from kafkacompat.replication.settings import FetchSettings
    from kafkacompat.timers import Clock


def choose_fetcher(topic: str, index: int, fetcher_count: int) -> int:
    """Return the number of a partition's fetcher: Kafka's hash, so that a topic's partitions are spread evenly."""
    value = (31 * java_string_hash(topic) + index) & 0xFFFFFFFF
    if value & 0x80000000:
        value = 0x100000000 - value
    return (value & 0x7FFFFFFF) % fetcher_count


class ReplicaFetcherManager:
    """The fetchers, one for each leader and fetcher number, and their partitions.

    ``make_sender`` returns the connections of a fetcher number; ``broker_epoch`` returns this broker's current epoch, -1
    for none.
    """

    def __init__(
        self,
        make_sender: Callable[[int], Sender],
        settings: FetchSettings,
        clock: Clock,
        quota: ReplicationQuota,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._make_sender = make_sender
        self._settings = settings
        self._fetcher_count = settings.fetcher_count
        self._clock = clock
        self._quota = quota
        self._broker_epoch = broker_epoch
        self._senders: dict[int, Sender] = {}
        self._fetchers: dict[tuple[int, int], LeaderFetcher] = {}
        self._followed: dict[PartitionKey, tuple[FollowedPartition, LeaderFetcher]] = {}
        self._ending: dict[PartitionKey, FollowedPartition] = {}
        """The partitions of earlier epochs, or stopped ones, whose logs are still being changed."""

    def follow(self, partition: FollowerReplica, leader_id: int, leader_epoch: int) -> None:
        """Fetch a partition from its leader; without effect if it is fetched from there in that epoch already."""
        key = key_of(partition)
        if key in self._followed:
            followed, fetcher = self._followed[key]
            same_epoch = (fetcher.leader_id, followed.fetch.leader_epoch) == (leader_id, leader_epoch)
            if same_epoch and followed.partition is partition and followed.fetch.state is not FAILED:
                return
            fetcher.remove(followed)
            self._note_ending(followed)
        self._add(partition, leader_id, leader_epoch)

    def _add(self, partition: FollowerReplica, leader_id: int, leader_epoch: int) -> None:
        settings = self._settings
        fetch = PartitionFetch(
            partition, leader_epoch, truncates_on_fetch=settings.truncates_on_fetch, backoff_s=settings.backoff_s
        )
        followed = FollowedPartition(fetch)
        earlier = self._ending.get(followed.key)
        if earlier is not None:
            # The log must be at rest before it is compared with the new leader's.
            followed.begin_change()
            earlier.when_idle().addCallback(lambda _: followed.end_change())
        fetcher = self._find_fetcher(leader_id, choose_fetcher(*followed.key, self._fetcher_count))
        self._followed[followed.key] = followed, fetcher
        fetcher.add(followed)

    def _note_ending(self, followed: FollowedPartition) -> Deferred[None]:
        """Remember a partition until nothing changes its log any more, when the Deferred fires."""
        if not followed.is_busy:
            return succeed(None)
        self._ending[followed.key] = followed
        return followed.when_idle().addCallback(lambda _: self._forget_ending(followed))

    def _forget_ending(self, followed: FollowedPartition) -> None:
        if self._ending.get(followed.key) is followed:
            del self._ending[followed.key]

    def _find_fetcher(self, leader_id: int, number: int) -> LeaderFetcher:
        fetcher = self._fetchers.get((leader_id, number))
        if fetcher is None:
            if number not in self._senders:
                self._senders[number] = self._make_sender(number)
            fetcher = self._fetchers[leader_id, number] = LeaderFetcher(
                leader_id, self._senders[number], self._settings, self._clock, self._quota, self._broker_epoch
            )
        return fetcher

    def stop(self, topic: str, index: int) -> Deferred[None]:
        """Fetch a partition no longer; fires when nothing changes its log any more."""
        entry = self._followed.pop((topic, index), None)
        if entry is None:
            return succeed(None)
        followed, fetcher = entry
        fetcher.remove(followed)
        return self._note_ending(followed)

    def stop_all(self) -> Deferred[None]:
        """Fetch nothing any more, and drop the requests in flight; fires when nothing changes a log any more."""
        entries, self._followed = self._followed, {}
        fetchers, self._fetchers = self._fetchers, {}
        for fetcher in fetchers.values():
            fetcher.stop()
        busy = [self._note_ending(followed) for followed, _ in entries.values() if followed.is_busy]
        return gatherResults(busy).addCallback(lambda _: None)

    def resize(self, fetcher_count: int) -> None:
        """Spread the partitions over another number of fetchers (``num.replica.fetchers``)."""
        if fetcher_count == self._fetcher_count:
            return
        self._fetcher_count = fetcher_count
        entries, self._followed = self._followed, {}
        for fetcher in self._fetchers.values():
            fetcher.stop()
        self._fetchers = {}
        for followed, fetcher in entries.values():
            self._note_ending(followed)
            self._add(followed.partition, fetcher.leader_id, followed.fetch.leader_epoch)
