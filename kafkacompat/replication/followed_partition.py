"""A partition that a fetcher works on: its fetch state, and whether its log is being changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred, succeed

from kafkacompat.replication.follower import key_of
from kafkacompat.replication.follower_session import FetchPosition

if TYPE_CHECKING:
    from kafkacompat.replication.follower import FollowerReplica, PartitionKey
    from kafkacompat.replication.partition_fetch import PartitionFetch


class FollowedPartition:
    """One partition in one leader epoch, and those who wait until nothing changes its log any more."""

    __slots__ = ("_busy_count", "_waiting", "fetch", "key")

    def __init__(self, fetch: PartitionFetch) -> None:
        self.fetch = fetch
        self.key: PartitionKey = key_of(fetch.partition)
        self._busy_count = 0
        self._waiting: list[Deferred[None]] = []

    @property
    def partition(self) -> FollowerReplica:
        """The follower's log."""
        return self.fetch.partition

    @property
    def is_busy(self) -> bool:
        """Whether the log is being changed, by this epoch or an earlier one."""
        return self._busy_count > 0

    def find_position(self) -> FetchPosition:
        """Return what a fetch says of the partition."""
        fetch, partition = self.fetch, self.fetch.partition
        return FetchPosition(
            partition.topic_id,
            partition.log_end_offset,
            partition.log_start_offset,
            fetch.leader_epoch,
            fetch.last_fetched_epoch,
        )

    def begin_change(self) -> None:
        """Note that a change of the log began."""
        self._busy_count += 1

    def end_change(self) -> None:
        """Note that a change of the log ended."""
        self._busy_count -= 1
        if not self._busy_count:
            waiting, self._waiting = self._waiting, []
            for idle in waiting:
                idle.callback(None)

    def when_idle(self) -> Deferred[None]:
        """Return a Deferred that fires when nothing changes the log any more."""
        if not self.is_busy:
            return succeed(None)
        idle: Deferred[None] = Deferred()
        self._waiting.append(idle)
        return idle
