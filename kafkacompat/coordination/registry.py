"""The shards of a coordinator's topic that this broker leads, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.shard import Shard
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.java_hash import partition_for_key


class ShardItem(Protocol):
    """What a coordinator keeps by its id: a group, a transactional id."""

    @property
    def shard(self) -> Shard:
        """The shard that it belongs to."""
        ...


Item = TypeVar("Item", bound=ShardItem)


class Registry(Generic[Item]):
    """The shards by partition, and by their ids the items that are in them.

    An id (of a group, a transactional id) belongs to one partition of the topic, whether there is such an item or not.
    """

    def __init__(self, log: CoordinatorLog) -> None:
        self.shards: dict[int, Shard] = {}
        self.by_id: dict[str, Item] = {}
        self.is_stopped = False
        self._log = log

    def partition_for(self, item_id: str) -> int:
        """Return the partition of the topic that an id belongs to."""
        return partition_for_key(item_id, self._log.partition_count)

    def check(self, item_id: str) -> ErrorCode:
        """Return NONE if this broker coordinates what the id names, existing or not, and has loaded it."""
        if self.is_stopped:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        shard = self.shards.get(self.partition_for(item_id))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.is_loading else ErrorCode.NONE

    def shard_for(self, item_id: str) -> Shard:
        """Return the shard of an id for which `check` is NONE."""
        return self.shards[self.partition_for(item_id)]

    def find(self, item_id: str) -> Item | ErrorCode:
        """Return the item; NONE if there is no such item; else why this broker cannot tell whether there is."""
        return self.by_id.get(item_id) or self.check(item_id)

    def in_shard(self, shard: Shard) -> Iterator[Item]:
        """Yield the items of one shard, as there are at the time of the call."""
        return (item for item in list(self.by_id.values()) if item.shard is shard)
