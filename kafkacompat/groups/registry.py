"""The groups of a coordinator by id, and the shards that they are in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kafkacompat.config.instances import NO_LIMIT, Instance
from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.registry import Registry
from kafkacompat.groups.any_group import AnyGroup
from kafkacompat.groups.offset_table import OffsetTransactions
from kafkacompat.metadata.instance_limits import FindInstance, find_no_instance
from kafkacompat.wire import entities
from kafkacompat.wire.errors import ErrorCode

DOT = "."


class CountedGroups(dict[str, AnyGroup]):
    """Groups by id; counts those whose ids begin with a prefix, without going through all of them each time."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: Counter[str] | None = None
        """How many ids begin with each text up to the first dot; None until somebody wants to know."""

    def __setitem__(self, group_id: str, group: AnyGroup) -> None:
        if self._counts is not None and group_id not in self:
            self._counts[_find_head(group_id)] += 1
        super().__setitem__(group_id, group)

    def __delitem__(self, group_id: str) -> None:
        super().__delitem__(group_id)
        if self._counts is not None:
            head = _find_head(group_id)
            self._counts[head] -= 1
            if not self._counts[head]:
                del self._counts[head]

    def add_all(self, groups: Mapping[str, AnyGroup]) -> None:
        """Add groups, which replace those with the same ids."""
        for group_id, group in groups.items():
            self[group_id] = group

    def count_with_prefix(self, prefix: str) -> int:
        """Return how many ids begin with *prefix*; quick if it is an instance's default prefix, a name and a dot."""
        if not prefix or _find_head(prefix) != prefix:
            return sum(group_id.startswith(prefix) for group_id in self)
        if self._counts is None:
            self._counts = Counter(map(_find_head, self))
        return self._counts[prefix]


def _find_head(group_id: str) -> str:
    """Return the id up to its first dot; "" if it has none."""
    head, dot, _ = group_id.partition(DOT)
    return head + dot if dot else ""


class GroupRegistry(Registry[AnyGroup]):
    """All groups; ``transactions`` are the open ones with offsets, by partition of the offsets topic.

    ``find_instance`` returns the instance of a group, whose limit.groups applies.
    """

    def __init__(self, log: CoordinatorLog, find_instance: FindInstance = find_no_instance) -> None:
        super().__init__(log)
        self.groups = CountedGroups()
        self.by_id = self.groups
        self.transactions: dict[int, OffsetTransactions] = {}
        self._find_instance = find_instance

    def is_current(self, group: AnyGroup) -> bool:
        """Return whether *group* is still the group of its id."""
        return self.by_id.get(group.group_id) is group

    def check_new(self, group_id: str) -> ErrorCode:
        """Return NONE if a group that does not exist may be created; GROUP_AUTHORIZATION_FAILED beyond limit.groups.

        Clients of every version take that for final, in each request that can create a group.
        """
        instance = self._find_instance(group_id)
        if instance is None:
            return ErrorCode.NONE
        limit = instance.int("limit.groups")
        if limit == NO_LIMIT or self.count_groups_of(instance) < limit:
            return ErrorCode.NONE
        return ErrorCode.GROUP_AUTHORIZATION_FAILED

    def count_groups_of(self, instance: Instance) -> int:
        """Return how many groups of an instance this broker coordinates."""
        prefix = instance.prefix
        adopted = instance.list_adopted(entities.GROUP)
        others = sum(group_id in self.by_id for group_id in adopted if not group_id.startswith(prefix))
        return self.groups.count_with_prefix(prefix) + others
