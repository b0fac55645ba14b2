"""Which groups are here, and in which partition of the offsets topic each is kept."""

from __future__ import annotations

from collections.abc import Iterator

from kafkacompat.groups.group import Group
from kafkacompat.groups.offsets_log import OffsetsLog
from kafkacompat.groups.writer import Writer
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.java_hash import partition_for_key


class Shard:
    """One partition of the offsets topic that this broker leads.

    While ``is_loading`` its groups are not to be seen; once ``is_active`` is False they belong to another
    broker, and what is still under way for them must not touch the registry any more.
    """

    def __init__(self, partition: int, writer: Writer) -> None:
        self.partition = partition
        self.writer = writer
        self.is_loading = True
        self.is_active = True


class Registry:
    """All groups by id, and the shards they live in."""

    def __init__(self, offsets_log: OffsetsLog) -> None:
        self.groups: dict[str, Group] = {}
        self.shards: dict[int, Shard] = {}
        self.is_stopped = False
        self._log = offsets_log

    def partition_for(self, group_id: str) -> int:
        """The partition of the offsets topic that a group belongs to."""
        return partition_for_key(group_id, self._log.partition_count)

    def find(self, group_id: str) -> Group | ErrorCode:
        """The group; NONE when there is no such group; else why it is not known whether there is."""
        return self.groups.get(group_id) or self.check(group_id)

    def check(self, group_id: str) -> ErrorCode:
        """NONE when this broker coordinates the group, existing or not, and knows it."""
        if self.is_stopped:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        shard = self.shards.get(self.partition_for(group_id))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.is_loading else ErrorCode.NONE

    def shard_for(self, group_id: str) -> Shard:
        """The shard of a group for which `check` is NONE."""
        return self.shards[self.partition_for(group_id)]

    def of_shard(self, shard: Shard) -> Iterator[Group]:
        """The groups kept in one partition."""
        return (group for group in list(self.groups.values()) if group.shard is shard)

    def is_current(self, group: Group) -> bool:
        """Whether *group* is still the group of its name here."""
        return self.groups.get(group.group_id) is group
