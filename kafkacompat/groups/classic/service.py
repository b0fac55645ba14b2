"""The classic groups of a coordinator: joins the parts of this package."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.outbox import Outbox
from kafkacompat.coordination.shard import Shard
from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.classic.description import describe_classic_group
from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.classic.joining import Joining
from kafkacompat.groups.classic.membership import Membership
from kafkacompat.groups.classic.rebalance import Rebalancer
from kafkacompat.groups.classic.state import DEAD, PREPARING_REBALANCE, STABLE
from kafkacompat.groups.classic_protocol import JoinAnswer, Joiner, SyncAnswer
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.apis.describe_groups import DescribedGroup
from kafkacompat.wire.apis.join_group import JoinGroupRequest
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.apis.sync_group import SyncGroupRequest
from kafkacompat.wire.errors import ErrorCode


class ClassicGroups:
    """Coordinates the classic groups of a registry, which may hold groups of the consumer protocol as well.

    Implements `GroupService`. A method that changes a group has to be called inside `Outbox.run`.
    """

    def __init__(
        self,
        clock: Clock,
        settings: GroupSettings,
        registry: GroupRegistry,
        outbox: Outbox,
        budget: MemoryBudget,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self.rebalance = Rebalancer(clock, settings, registry, outbox)
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._budget = budget
        self._joining = Joining(clock, settings, registry, outbox, self.rebalance, budget, random_bytes)
        self._membership = Membership(outbox, self.rebalance, self._joining.pending)

    # For members

    def join_new_group(self, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        """JoinGroup for a group that does not exist."""
        return self._joining.join_new_group(request, joiner)

    def join(self, group: ClassicGroup, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        """JoinGroup."""
        return self._joining.join(group, request, joiner)

    def sync(self, group: ClassicGroup, request: SyncGroupRequest) -> SyncAnswer:
        """SyncGroup."""
        return self._membership.sync(group, request)

    def heartbeat(self, group: ClassicGroup, identity: SenderIdentity) -> ErrorCode:
        """Heartbeat."""
        return self._membership.heartbeat(group, identity)

    def leave(self, group: ClassicGroup, members: Sequence[MemberIdentity]) -> list[ErrorCode]:
        """LeaveGroup."""
        return self._membership.leave(group, members)

    def on_commit(self, group: ClassicGroup, identity: SenderIdentity) -> None:
        """Restart the session of a member whose commit the group accepts."""
        if group.state in (STABLE, PREPARING_REBALANCE):
            self.rebalance.restart_session(group, group.members[identity.member_id])

    # For the coordinator

    def create(self, group_id: str, shard: Shard) -> ClassicGroup:
        """Add an empty group to the registry."""
        group = ClassicGroup(group_id, shard, self._budget, now_ms(self._clock))
        self._registry.by_id[group_id] = group
        return group

    def take_over(self, group: ClassicGroup) -> None:
        """Start the sessions of the members of a loaded group."""
        for member in group.members.values():
            self.rebalance.restart_session(group, member)
        if len(group.members) > self._settings.group_max_size:
            self.rebalance.start_rebalance(group, "group.max.size is smaller than before")

    def forget(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Remove a group from the registry; requests that wait for it are answered with *code*."""
        self.rebalance.remove_group(group, code)

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups for one group.

        A group that does not exist, or is not of the classic protocol, has the code GROUP_ID_NOT_FOUND and the state Dead.
        """
        group = self._registry.find(group_id)
        if isinstance(group, ErrorCode) and group:
            return DescribedGroup(group_id=group_id, error_code=group)
        if isinstance(group, ClassicGroup):
            return describe_classic_group(group)
        code = ErrorCode.GROUP_ID_NOT_FOUND
        message = f"Group {group_id} is not a classic group." if group else f"Group {group_id} not found."
        return DescribedGroup(group_id=group_id, error_code=code, error_message=message, group_state=DEAD.value)
