"""Which partitions of a coordinator's topic are here, and which groups are in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.writer import Writer
from kafkacompat.groups.pending_offsets import OffsetTransactions
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.java_hash import partition_for_key

if TYPE_CHECKING:
    from kafkacompat.groups.any_group import AnyGroup


class Shard:
    """One partition of a coordinator's topic that this broker leads.

    While ``is_loading`` what is in it is not to be seen; once ``is_active`` is False it belongs to another
    broker, and what is still under way for it must not touch the registry any more.
    """

    def __init__(self, partition: int, writer: Writer, leader_epoch: int = 0) -> None:
        self.partition = partition
        self.writer = writer
        self.leader_epoch = leader_epoch
        self.is_loading = True
        self.is_active = True


class Shards:
    """The shards of one topic by partition; a key (of a group, a transactional id) belongs to one of them."""

    def __init__(self, log: CoordinatorLog) -> None:
        self.shards: dict[int, Shard] = {}
        self.is_stopped = False
        self._log = log

    def partition_for(self, key: str) -> int:
        """The partition of the topic that a key belongs to."""
        return partition_for_key(key, self._log.partition_count)

    def check(self, key: str) -> ErrorCode:
        """NONE when this broker coordinates what the key names, existing or not, and knows it."""
        if self.is_stopped:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        shard = self.shards.get(self.partition_for(key))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.is_loading else ErrorCode.NONE

    def shard_for(self, key: str) -> Shard:
        """The shard of a key for which `check` is NONE."""
        return self.shards[self.partition_for(key)]


class Registry(Shards):
    """All groups by id, and the shards they live in; of each shard the ``transactions`` that offsets wait for."""

    def __init__(self, log: CoordinatorLog) -> None:
        super().__init__(log)
        self.groups: dict[str, AnyGroup] = {}
        self.transactions: dict[int, OffsetTransactions] = {}

    def find(self, group_id: str) -> AnyGroup | ErrorCode:
        """The group; NONE when there is no such group; else why it is not known whether there is."""
        return self.groups.get(group_id) or self.check(group_id)

    def of_shard(self, shard: Shard) -> Iterator[AnyGroup]:
        """The groups kept in one partition."""
        return (group for group in list(self.groups.values()) if group.shard is shard)

    def is_current(self, group: AnyGroup) -> bool:
        """Whether *group* is still the group of its name here."""
        return self.groups.get(group.group_id) is group
