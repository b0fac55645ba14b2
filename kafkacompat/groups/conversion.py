"""Groups that change from one protocol to the other while they are used (group.consumer.migration.policy).

A classic group becomes a consumer group when the first member of the consumer protocol joins. Its other members go on with
the classic protocol. A consumer group becomes a classic group when only members of the classic protocol are left. The group
keeps its offsets.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.groups.any_group import AnyGroup
from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.classic.member import ClassicMember
from kafkacompat.groups.classic.service import ClassicGroups
from kafkacompat.groups.classic.state import STABLE
from kafkacompat.groups.classic_protocol import CONSUMER_PROTOCOL_TYPE
from kafkacompat.groups.consumer.classic_assignment import classic_assignment, partitions_by_id
from kafkacompat.groups.consumer.contents import GroupContents
from kafkacompat.groups.consumer.draft import GroupDraft
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.member import Assignment, ClassicMetadata, ConsumerMember, as_holding, count_partitions
from kafkacompat.groups.consumer.metadata_hash import compute_metadata_hash
from kafkacompat.groups.consumer.retargeting import find_subscribed_topics
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.metadata.image import ImageHolder, MetadataImage
from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_subscription,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import MalformedError

log = logging.getLogger(__name__)


class GroupConversion:
    """Converts groups from one kind to the other. Implements `Conversion`; every method is called inside `Outbox.run`."""

    def __init__(self, settings: ConsumerGroupSettings, metadata: ImageHolder, classic: ClassicGroups) -> None:
        self._settings = settings
        self._metadata = metadata
        self._classic = classic

    # To the consumer protocol

    def consumer_draft(self, classic: AnyGroup) -> GroupDraft:
        """See Conversion."""
        assert isinstance(classic, ClassicGroup)
        self._check_convertible(classic)
        return consumer_draft(classic, self._metadata.image)

    def _check_convertible(self, classic: ClassicGroup) -> None:
        group_id = classic.group_id
        if not self._settings.may_upgrade:
            policy = f"group.consumer.migration.policy={self._settings.migration_policy}"
            raise not_convertible_error(group_id, f"{policy} forbids it")
        if not classic.is_of_consumers:
            raise not_convertible_error(group_id, f"its protocol type is {classic.listed_protocol_type}, not consumer")
        if len(classic.members) > self._settings.max_size:
            raise not_convertible_error(
                group_id, f"it has more than group.consumer.max.size={self._settings.max_size} members"
            )

    def retire_classic(self, classic: AnyGroup) -> None:
        """See Conversion."""
        assert isinstance(classic, ClassicGroup)
        self._classic.forget(classic, ErrorCode.REBALANCE_IN_PROGRESS)

    # Back to the classic protocol

    def make_classic(self, group: ConsumerGroup, contents: GroupContents, reason: str | None) -> list[Record]:
        """See Conversion."""
        log.info("Group %s becomes a classic group: %s", group.group_id, reason)
        classic = self._build_replacement(group)
        _fill_group(classic, contents, self._metadata.image)
        assignments = {member.member_id: member.assignment for member in classic.members.values()}
        # If the broker ends before the rebalance, no member may find its own generation in the log and skip the rebalance.
        generation_id = classic.generation_id + (reason is not None)
        records = [*group.tombstones(), classic.generation_record(assignments, generation_id)]
        group.remove_all_members()
        for member in classic.members.values():
            self._classic.rebalance.restart_session(classic, member)
        if reason is not None:
            self._classic.rebalance.start_rebalance(classic, reason)
        return records

    def make_empty_classic(self, group: ConsumerGroup) -> list[Record]:
        """See Conversion."""
        records = group.tombstones()
        group.remove_all_members()
        self._build_replacement(group)
        return records

    def _build_replacement(self, group: ConsumerGroup) -> ClassicGroup:
        classic = self._classic.create(group.group_id, group.shard)
        classic.offsets = group.offsets
        classic.is_logged = True
        return classic


# To the consumer protocol


def consumer_draft(group: ClassicGroup, image: MetadataImage) -> GroupDraft:
    """Return a classic group as a consumer group. Raises KafkaError: GROUP_ID_NOT_FOUND, if it cannot become one."""
    try:
        members = _consumer_members(group, image)
    except MalformedError as problem:
        raise not_convertible_error(
            group.group_id, f"a subscription or an assignment of its members is malformed: {problem}"
        ) from None
    draft = GroupDraft(group.group_id, GroupContents())
    for member in members:
        draft.set_member(member)
    draft.set_epoch(group.generation_id, compute_metadata_hash(find_subscribed_topics(draft.contents), image))
    for member in members:
        draft.set_target(
            member.member_id, {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}
        )
    draft.set_assignment_epoch(group.generation_id, 0)
    for member in members:
        draft.set_current_assignment(member)
    if len(draft.contents.owners) < sum(count_partitions(member.assigned) for member in members):
        raise not_convertible_error(group.group_id, "a partition is assigned to two of its members")
    return draft


def not_convertible_error(group_id: str, reason: str) -> KafkaError:
    """Return the error GROUP_ID_NOT_FOUND for a classic group that cannot be converted."""
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"the classic group {group_id} cannot become a consumer group: {reason}"
    )


def _consumer_members(group: ClassicGroup, image: MetadataImage) -> list[ConsumerMember]:
    subscriptions = {
        member.member_id: read_subscription(member.metadata_for(group.protocol_name) or member.protocols[0][1])
        for member in group.members.values()
    }
    if any(member.assignment for member in group.members.values()):
        held = {member.member_id: _assigned_partitions(group, member) for member in group.members.values()}
    else:
        held = _claimed_partitions(subscriptions)
    return [
        _consumer_member(
            member, subscriptions[member_id], group.generation_id, partitions_by_id(held.get(member_id, ()), image)
        )
        for member_id, member in group.members.items()
    ]


def _consumer_member(
    member: ClassicMember, subscription: ConsumerProtocolSubscription, generation: int, assigned: Assignment
) -> ConsumerMember:
    return ConsumerMember(
        member_id=member.member_id,
        member_epoch=generation,
        previous_member_epoch=generation,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        assigned=as_holding(assigned, generation),
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
    )


def _claimed_partitions(subscriptions: Mapping[str, ConsumerProtocolSubscription]) -> dict[str, list[TopicPartition]]:
    """Return the partitions that members claim to own. Between two rebalances no member has an assignment.

    As for assignors, only the claims of the newest generation count (KIP-792).
    """
    newest = max((subscription.generation_id for subscription in subscriptions.values()), default=0)
    return {
        member_id: subscription.owned_partitions
        for member_id, subscription in subscriptions.items()
        if subscription.generation_id == newest
    }


def _assigned_partitions(group: ClassicGroup, member: ClassicMember) -> list[TopicPartition]:
    if not member.assignment:
        return []
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise not_convertible_error(group.group_id, "its members use a custom assignor, whose user data would be lost")
    return assignment.assigned_partitions


# Back to the classic protocol


def _fill_group(classic: ClassicGroup, contents: GroupContents, image: MetadataImage) -> None:
    """Fill an empty classic group from the contents of a consumer group whose members all speak the classic protocol."""
    classic.generation_id = contents.epoch
    for consumer_member in contents.members.values():
        classic.add_member(_classic_member(consumer_member), CONSUMER_PROTOCOL_TYPE)
    classic.protocol_name = classic.select_protocol()
    classic.subscribed_topics = classic.compute_subscribed_topics()
    classic.state = STABLE
    for member in classic.members.values():
        target = contents.targets.get(member.member_id, {})
        member.assignment = classic_assignment(target, member.metadata_for(classic.protocol_name), image)


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None, "only members of the classic protocol are left"
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.classic.protocols,
    )
