"""The consumer groups of a coordinator: joins the parts of this package."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from twisted.internet.task import Cooperator

from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.outbox import Outbox
from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.classic_protocol import JoinAnswer, Joiner, LeaveAnswer, SyncAnswer, build_join_refusal
from kafkacompat.groups.consumer.admission import Admission, group_not_found_error
from kafkacompat.groups.consumer.checks import check_groups_served
from kafkacompat.groups.consumer.classic_members import ClassicMembers
from kafkacompat.groups.consumer.conversion import Conversion
from kafkacompat.groups.consumer.departures import Departures
from kafkacompat.groups.consumer.description import describe_consumer_group
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.group_writer import GroupWriter
from kafkacompat.groups.consumer.heartbeats import HeartbeatAnswer, Heartbeats
from kafkacompat.groups.consumer.pattern_subscriptions import PatternSubscriptions
from kafkacompat.groups.consumer.progress import ClientIdentity, GroupProgress
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings, GroupConfigs
from kafkacompat.groups.consumer.timeouts import Timeouts
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.timers import Clock
from kafkacompat.wire.apis.consumer_group_describe import DescribedGroup, Member
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.apis.join_group import JoinGroupRequest
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.apis.sync_group import SyncGroupRequest
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


class ConsumerGroups:
    """Coordinates the consumer groups of a registry, which may hold classic groups as well. Implements `GroupService`.

    ``reload`` loads a partition of the offsets topic again after a failed write. ``join`` passes a JoinGroup to the group that
    has its id now, of either kind.
    """

    def __init__(
        self,
        clock: Clock,
        settings: ConsumerGroupSettings,
        registry: GroupRegistry,
        outbox: Outbox,
        metadata: ImageHolder,
        budget: MemoryBudget,
        conversion: Conversion,
        cooperator: Cooperator,
        random_bytes: Callable[[int], bytes],
        reload: Callable[[int], None],
        join: Callable[[JoinGroupRequest, Joiner], JoinAnswer],
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._outbox = outbox
        self._metadata = metadata
        self._send_join = join
        self._configs = GroupConfigs(settings, metadata)
        self._timeouts = timeouts = Timeouts(clock, outbox, self._configs, self._on_expired)
        storing = GroupWriter(registry, budget, timeouts, reload)
        patterns = PatternSubscriptions(clock, settings, registry, outbox, metadata, storing, cooperator)
        progress = GroupProgress(clock, settings, self._configs, metadata, storing, patterns, timeouts)
        admission = Admission(registry, budget, conversion, random_bytes)
        self._departures = departures = Departures(settings, metadata, conversion, timeouts, storing)
        self._heartbeats = Heartbeats(
            settings, self._configs, admission, progress, departures, timeouts, patterns, outbox
        )
        self._classic = ClassicMembers(settings, metadata, admission, progress, departures, timeouts, storing)

    def _on_expired(self, group: ConsumerGroup, member_id: str, reason: str) -> None:
        self._departures.expire_member(group, member_id, reason)

    def take_over(self, group: ConsumerGroup) -> None:
        """Start the timers of the members of a loaded group."""
        self._timeouts.start_missing(group)

    def forget(self, group: ConsumerGroup, code: ErrorCode) -> None:
        """Remove a group from the registry. No request waits for a consumer group, so *code* goes to nobody."""
        del self._registry.by_id[group.group_id]
        group.remove_all_members()

    # For members of the consumer protocol

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: ClientIdentity, *, needs_member_id: bool
    ) -> HeartbeatAnswer:
        """ConsumerGroupHeartbeat."""
        return self._outbox.run(self._heartbeats.heartbeat, request, client, needs_member_id=needs_member_id)

    # For members of the classic protocol

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        """JoinGroup."""
        if not group.is_empty:
            return self._classic.join(group, request, joiner)
        if request.member_id:
            return build_join_refusal(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        self._departures.make_empty_classic(group)
        return self._send_join(request, joiner)

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncAnswer:
        """SyncGroup."""
        return self._classic.sync(group, request)

    def heartbeat(self, group: ConsumerGroup, identity: SenderIdentity) -> ErrorCode:
        """Heartbeat."""
        return self._classic.heartbeat(group, identity)

    def leave(self, group: ConsumerGroup, members: Sequence[MemberIdentity]) -> LeaveAnswer:
        """LeaveGroup."""
        return self._classic.leave(group, members)

    def on_commit(self, group: ConsumerGroup, identity: SenderIdentity) -> None:
        """See GroupService. A commit does not restart the session of a member."""

    # For administrators

    def describe(self, group_id: str) -> tuple[DescribedGroup, Iterator[Member]]:
        """ConsumerGroupDescribe for one group: without its members, and these one by one."""
        try:
            return self._describe(group_id)
        except KafkaError as problem:
            text = problem.detail or None
            return DescribedGroup(group_id=group_id, error_code=problem.code, error_message=text), iter(())

    def _describe(self, group_id: str) -> tuple[DescribedGroup, Iterator[Member]]:
        check_groups_served(self._settings)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = self._registry.find(group_id)
        if isinstance(group, ErrorCode) and group:
            raise KafkaError(group)
        if not isinstance(group, ConsumerGroup):
            raise group_not_found_error(group_id, group)
        return describe_consumer_group(group, self._settings.assignors[0], self._metadata.image)
