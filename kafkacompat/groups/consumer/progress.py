"""The change that a member's request makes to its group, for members of either protocol."""

from __future__ import annotations

from typing import NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.groups.consumer.contents import GroupContents, ResolvedPattern
from kafkacompat.groups.consumer.draft import GroupDraft
from kafkacompat.groups.consumer.group import CompilePattern, ConsumerGroup, TopicFilter, compile_pattern
from kafkacompat.groups.consumer.group_writer import GroupWriter
from kafkacompat.groups.consumer.member import ConsumerMember, MemberState, MemberTimer
from kafkacompat.groups.consumer.pattern_subscriptions import PatternChange, PatternSubscriptions
from kafkacompat.groups.consumer.reconciliation import OwnedPartitions
from kafkacompat.groups.consumer.retargeting import (
    increment_epoch,
    increment_epoch_if_topics_changed,
    reconcile_in_draft,
    update_targets,
)
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings, GroupConfigs
from kafkacompat.groups.consumer.timeouts import Timeouts
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.errors import ErrorCode


class ClientIdentity(NamedTuple):
    """The sender of a request: its client id, its address as Kafka prints it, and the topics that its patterns may match."""

    client_id: str
    client_host: str
    may_see: TopicFilter | None = None
    compile_pattern: CompilePattern = compile_pattern


class GroupChange(NamedTuple):
    """A planned change of a group: ``before`` has the group's contents without it, ``records`` precede it in the log."""

    group: ConsumerGroup
    before: GroupContents
    draft: GroupDraft
    records: list[Record]


def start_change(group: ConsumerGroup) -> GroupChange:
    """Return an empty change of a group."""
    return GroupChange(group, group.contents, GroupDraft(group.group_id, group.contents), [])


class GroupProgress:
    """Plans and stores the changes of groups."""

    def __init__(
        self,
        clock: Clock,
        settings: ConsumerGroupSettings,
        configs: GroupConfigs,
        metadata: ImageHolder,
        storing: GroupWriter,
        patterns: PatternSubscriptions,
        timeouts: Timeouts,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._configs = configs
        self._metadata = metadata
        self._storing = storing
        self._patterns = patterns
        self._timeouts = timeouts

    def subscribe(
        self,
        change: GroupChange,
        old: ConsumerMember,
        new: ConsumerMember,
        resolved: ResolvedPattern | None = None,
        compile_pattern: CompilePattern = compile_pattern,
    ) -> bool:
        """Store the fields that a member reports, and increment the group's epoch if they or the topics require it.

        *resolved* has the topics of the member's pattern, if they were looked up. Returns True if its subscription changed.
        Raises KafkaError: INVALID_REGULAR_EXPRESSION.
        """
        draft, image = change.draft, self._metadata.image
        if new != old:
            draft.set_member(new)
        pattern = self._patterns.subscribe(draft, change.before, old, new, resolved, compile_pattern)
        if resolved is not None and not change.before.patterns:
            change.group.resolved_topics_version = resolved.version
        has_new_topics = new.topics != old.topics
        # A member that replaces a static member may have been another member before, whose partitions are free then.
        has_fewer_members = len(draft.contents.members) < len(change.before.members)
        if has_new_topics or has_fewer_members or pattern is PatternChange.KNOWN:
            increment_epoch(draft, image)
        elif change.group.checked_image is not image:
            increment_epoch_if_topics_changed(draft, image)
            if draft.contents.has_partition_metadata:
                draft.drop_partition_metadata()
        return has_new_topics or pattern is not PatternChange.UNCHANGED

    def reconcile(
        self,
        change: GroupChange,
        member: ConsumerMember,
        owned: OwnedPartitions,
        *,
        has_new_subscription: bool,
        may_retarget: bool = True,
    ) -> ConsumerMember:
        """Compute new targets if they are due, and move the member towards its target.

        Raises KafkaError: FENCED_MEMBER_EPOCH.
        """
        draft, image = change.draft, self._metadata.image
        if may_retarget:
            interval_ms = self._configs.assignment_interval_ms(change.group.group_id)
            update_targets(draft, image, self._settings.assignors[0], now_ms(self._clock), interval_ms)
        return reconcile_in_draft(draft, member, image, owned, has_new_subscription=has_new_subscription)

    def check_memory(self, change: GroupChange) -> None:
        """Raise KafkaError COORDINATOR_NOT_AVAILABLE if the memory budget has no room for the change."""
        self._storing.check_memory(change.group, change.draft)

    def apply_and_write(self, change: GroupChange) -> Deferred[ErrorCode] | None:
        """Apply the change. Fires when it is in the log; returns None if there is nothing to wait for."""
        group = change.group
        group.checked_image = self._metadata.image
        waiting = self._storing.apply_and_write(group, change.draft, change.records)
        self._patterns.refresh_if_due(group)
        return waiting

    def update_rebalance_timer(self, group: ConsumerGroup, before: ConsumerMember, member: ConsumerMember) -> None:
        """Start the rebalance timeout of a member of the consumer protocol that has to give up partitions, else cancel it."""
        if member is before or member.classic is not None:
            return
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._timeouts.start(group, MemberTimer.REBALANCE, member.member_id, member.rebalance_timeout_ms)
        else:
            self._timeouts.cancel(group, member.member_id, MemberTimer.REBALANCE)
