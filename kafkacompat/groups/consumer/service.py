"""The consumer groups of a coordinator: the parts put together, and what is asked of them from outside."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from twisted.internet.task import Cooperator

from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.outbox import Outbox
from kafkacompat.coordination.shard import Registry
from kafkacompat.groups.any_group import Identity
from kafkacompat.groups.classic.group import Group
from kafkacompat.groups.classic.joining import JoinAnswer, Joiner
from kafkacompat.groups.classic.membership import SyncAnswer
from kafkacompat.groups.classic.rebalance import Rebalance
from kafkacompat.groups.consumer.admission import Admission, not_found
from kafkacompat.groups.consumer.checks import check_served
from kafkacompat.groups.consumer.classic_members import ClassicMembers, LeaveAnswer
from kafkacompat.groups.consumer.departures import Departures
from kafkacompat.groups.consumer.description import describe_group
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.heartbeats import HeartbeatAnswer, Heartbeats
from kafkacompat.groups.consumer.patterns import Patterns
from kafkacompat.groups.consumer.progress import Client, Progress
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings, GroupConfigs
from kafkacompat.groups.consumer.storing import Storing
from kafkacompat.groups.consumer.timeouts import Timeouts
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.apis.consumer_group_describe import DescribedGroup
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.apis.join_group import JoinGroupRequest
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.apis.sync_group import SyncGroupRequest
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


class ConsumerGroups:
    """Coordinates the consumer groups of a registry, where they are beside the classic ones.

    ``reload`` reads a partition of the offsets topic again, should a write to it have failed.
    """

    def __init__(
        self,
        clock: Clock,
        settings: ConsumerGroupSettings,
        registry: Registry,
        outbox: Outbox,
        metadata: ImageHolder,
        budget: MemoryBudget,
        rebalance: Rebalance,
        cooperator: Cooperator,
        random_bytes: Callable[[int], bytes],
        reload: Callable[[int], None],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._outbox = outbox
        self._metadata = metadata
        self._budget = budget
        self._configs = GroupConfigs(settings, metadata)
        self._timeouts = timeouts = Timeouts(clock, outbox, self._configs, self._expired)
        storing = Storing(registry, budget, timeouts, reload)
        patterns = Patterns(clock, settings, registry, outbox, metadata, storing, cooperator)
        progress = Progress(clock, settings, self._configs, metadata, storing, patterns, timeouts)
        admission = Admission(settings, registry, metadata, budget, rebalance, random_bytes)
        self._departures = departures = Departures(
            clock, settings, registry, metadata, budget, rebalance, timeouts, storing
        )
        self._heartbeats = Heartbeats(
            settings, self._configs, admission, progress, departures, timeouts, patterns, outbox
        )
        self._classic = ClassicMembers(settings, metadata, admission, progress, departures, timeouts, storing)

    def _expired(self, group: ConsumerGroup, member_id: str, reason: str) -> None:
        self._departures.expired(group, member_id, reason)

    def loaded(self, group: ConsumerGroup) -> None:
        """Watch over the members of a group that was read from the log, as if they had just been heard of."""
        self._timeouts.watch(group)

    def forget(self, group: ConsumerGroup) -> None:
        """Take a group out of the registry."""
        del self._registry.groups[group.group_id]
        group.clear()

    # For members of the consumer protocol

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, *, needs_member_id: bool
    ) -> HeartbeatAnswer:
        """ConsumerGroupHeartbeat."""
        return self._outbox.run(self._heartbeats.heartbeat, request, client, needs_member_id=needs_member_id)

    # For members of the classic protocol

    def found(self, group_id: str) -> ConsumerGroup | None:
        """The consumer group of this name, if it has members."""
        group = self._registry.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) and not group.is_empty else None

    def make_empty_classic(self, group_id: str) -> None:
        """Let an empty consumer group, if there is one, be a classic group from now on."""
        group = self._registry.groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or not group.is_empty:
            return
        classic = Group(group_id, group.shard, self._budget, now_ms(self._clock))
        classic.offsets = group.offsets
        classic.is_logged = True
        self._departures.replace_empty(group, classic)

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        """JoinGroup."""
        return self._outbox.run(self._classic.join, group, request, joiner)

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncAnswer:
        """SyncGroup."""
        return self._outbox.run(self._classic.sync, group, request)

    def classic_heartbeat(self, group: ConsumerGroup, identity: Identity) -> ErrorCode:
        """Heartbeat."""
        return self._outbox.run(self._classic.heartbeat, group, identity)

    def leave(self, group: ConsumerGroup, members: Sequence[MemberIdentity]) -> LeaveAnswer:
        """LeaveGroup."""
        return self._outbox.run(self._classic.leave, group, members)

    # For administrators

    def describe(self, group_id: str) -> DescribedGroup:
        """ConsumerGroupDescribe for one group."""
        try:
            return self._describe(group_id)
        except KafkaError as problem:
            return DescribedGroup(group_id=group_id, error_code=problem.code, error_message=problem.detail or None)

    def _describe(self, group_id: str) -> DescribedGroup:
        check_served(self._settings)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = self._registry.find(group_id)
        if isinstance(group, ErrorCode) and group:
            raise KafkaError(group)
        if not isinstance(group, ConsumerGroup):
            raise not_found(group_id, group)
        return describe_group(group, self._settings.assignors[0], self._metadata.image)
