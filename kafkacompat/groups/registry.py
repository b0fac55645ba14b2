"""The groups of a coordinator by id, and the shards that they are in."""

from __future__ import annotations

from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.registry import Registry
from kafkacompat.groups.any_group import AnyGroup
from kafkacompat.groups.offset_table import OffsetTransactions


class GroupRegistry(Registry[AnyGroup]):
    """All groups; ``transactions`` are the open ones with offsets, by partition of the offsets topic."""

    def __init__(self, log: CoordinatorLog) -> None:
        super().__init__(log)
        self.transactions: dict[int, OffsetTransactions] = {}

    def is_current(self, group: AnyGroup) -> bool:
        """Return whether *group* is still the group of its id."""
        return self.by_id.get(group.group_id) is group
