"""What a request of a member does to its group, whichever protocol the member speaks."""

from __future__ import annotations

from typing import NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.groups.consumer.contents import Contents, ResolvedPattern
from kafkacompat.groups.consumer.draft import Draft
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.group_writer import Storing
from kafkacompat.groups.consumer.member import ConsumerMember, MemberState, Timer
from kafkacompat.groups.consumer.pattern_subscriptions import Patterns, Subscription
from kafkacompat.groups.consumer.reconciliation import Owned
from kafkacompat.groups.consumer.retargeting import bump, bump_if_topics_changed, reconcile_in, retarget
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings, GroupConfigs
from kafkacompat.groups.consumer.timeouts import Timeouts
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.errors import ErrorCode


class Client(NamedTuple):
    """Who sends a request: what it calls itself, and its address as Kafka prints it."""

    client_id: str
    client_host: str


class Change(NamedTuple):
    """A change of a group under way: ``before`` is what the group was, ``records`` what precedes it in the log."""

    group: ConsumerGroup
    before: Contents
    draft: Draft
    records: list[Record]


def change_of(group: ConsumerGroup) -> Change:
    """A change of a group that has none yet."""
    return Change(group, group.contents, Draft(group.group_id, group.contents), [])


class Progress:
    """Moves groups on."""

    def __init__(
        self,
        clock: Clock,
        settings: ConsumerGroupSettings,
        configs: GroupConfigs,
        metadata: ImageHolder,
        storing: Storing,
        patterns: Patterns,
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
        self, change: Change, old: ConsumerMember, new: ConsumerMember, found: ResolvedPattern | None = None
    ) -> bool:
        """Put down what a member says of itself, and let the group be in its next epoch if that calls for it.

        *found* are the topics of its pattern, if they were looked up. True if its subscription changed. Raises
        KafkaError: INVALID_REGULAR_EXPRESSION.
        """
        draft, image = change.draft, self._metadata.image
        if new != old:
            draft.describe(new)
        pattern = self._patterns.subscribe(draft, change.before, old, new, found)
        if found is not None and not change.before.patterns:
            change.group.resolved_topics_version = found.version
        has_new_topics = new.topics != old.topics
        # Who takes the place of a static member may have been another member before, whose share is free then.
        is_one_fewer = len(draft.contents.members) < len(change.before.members)
        if has_new_topics or is_one_fewer or pattern is Subscription.KNOWN:
            bump(draft, image)
        elif change.group.checked_image is not image:
            bump_if_topics_changed(draft, image)
            if draft.contents.has_partition_metadata:
                draft.drop_partition_metadata()
        return has_new_topics or pattern is not Subscription.UNCHANGED

    def reconcile(
        self,
        change: Change,
        member: ConsumerMember,
        owned: Owned,
        *,
        has_new_subscription: bool,
        may_retarget: bool = True,
    ) -> ConsumerMember:
        """Share the partitions out anew if it is time to, and move the member towards what it shall have.

        Raises KafkaError: FENCED_MEMBER_EPOCH.
        """
        draft, image = change.draft, self._metadata.image
        if may_retarget:
            interval_ms = self._configs.assignment_interval_ms(change.group.group_id)
            retarget(draft, image, self._settings.assignors[0], now_ms(self._clock), interval_ms)
        return reconcile_in(draft, member, image, owned, has_new_subscription=has_new_subscription)

    def check_room(self, change: Change) -> None:
        """Raises KafkaError: COORDINATOR_NOT_AVAILABLE, when there is no memory for a change."""
        self._storing.check_room(change.group, change.draft)

    def store(self, change: Change) -> Deferred[ErrorCode] | None:
        """Make the change; fires when it is in the log, None when there is nothing to wait for."""
        group = change.group
        group.checked_image = self._metadata.image
        waiting = self._storing.store(group, change.draft, change.records)
        self._patterns.refresh_if_due(group)
        return waiting

    def watch(self, group: ConsumerGroup, before: ConsumerMember, member: ConsumerMember) -> None:
        """Give a member of the consumer protocol that has to give partitions up its time to do so."""
        if member is before or member.classic is not None:
            return
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._timeouts.start(group, Timer.REBALANCE, member.member_id, member.rebalance_timeout_ms)
        else:
            self._timeouts.cancel(group, member.member_id, Timer.REBALANCE)
