"""Groups that change from one protocol to the other while they are used (group.consumer.migration.policy).

A classic group becomes a consumer group when its first member of the new protocol joins; the others go on in it by the
old one. A consumer group becomes a classic one when only such others are left. The offsets stay with the group.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.groups.classic.group import CONSUMER_PROTOCOL_TYPE, Group
from kafkacompat.groups.classic.member import Member
from kafkacompat.groups.classic.state import STABLE
from kafkacompat.groups.consumer.contents import Contents
from kafkacompat.groups.consumer.draft import Draft
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.member import (
    Assignment,
    ClassicMetadata,
    ConsumerMember,
    count,
    with_epoch,
)
from kafkacompat.groups.consumer.metadata_hash import metadata_hash
from kafkacompat.groups.consumer.retargeting import subscribed_topics
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import MalformedError

log = logging.getLogger(__name__)


# To the consumer protocol


def consumer_contents(group: Group, image: MetadataImage) -> Draft:
    """What a classic group is as a consumer group; raises KafkaError: GROUP_ID_NOT_FOUND if it cannot be one."""
    try:
        members = _consumer_members(group, image)
    except MalformedError as problem:
        raise not_convertible(
            group.group_id, f"what its members said or were assigned is malformed: {problem}"
        ) from None
    draft = Draft(group.group_id, Contents())
    for member in members:
        draft.describe(member)
    draft.set_epoch(group.generation_id, metadata_hash(subscribed_topics(draft.contents), image))
    for member in members:
        draft.aim(member.member_id, {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()})
    draft.set_assignment_epoch(group.generation_id, 0)
    for member in members:
        draft.place(member)
    if len(draft.contents.owners) < sum(count(member.assigned) for member in members):
        raise not_convertible(group.group_id, "a partition is assigned to two of its members")
    return draft


def not_convertible(group_id: str, reason: str) -> KafkaError:
    """GROUP_ID_NOT_FOUND, for a group that stays a classic one."""
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"the classic group {group_id} cannot become a consumer group: {reason}"
    )


def _consumer_members(group: Group, image: MetadataImage) -> list[ConsumerMember]:
    subscriptions = {
        member.member_id: read_subscription(member.metadata(group.protocol_name) or member.protocols[0][1])
        for member in group.members.values()
    }
    if any(member.assignment for member in group.members.values()):
        held = {member.member_id: _assigned(group, member) for member in group.members.values()}
    else:
        held = _claimed(subscriptions)
    return [
        _consumer_member(
            member, subscriptions[member_id], group.generation_id, partitions_by_id(held.get(member_id, ()), image)
        )
        for member_id, member in group.members.items()
    ]


def _consumer_member(
    member: Member, subscription: ConsumerProtocolSubscription, generation: int, assigned: Assignment
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
        assigned=with_epoch(assigned, generation),
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
    )


def _claimed(subscriptions: Mapping[str, ConsumerProtocolSubscription]) -> dict[str, list[TopicPartition]]:
    """What members say that they keep while one rebalance follows another: in between nobody has an assignment.

    As to assignors, only what was owned in the newest generation counts (KIP-792).
    """
    newest = max((each.generation_id for each in subscriptions.values()), default=0)
    return {
        member_id: each.owned_partitions for member_id, each in subscriptions.items() if each.generation_id == newest
    }


def _assigned(group: Group, member: Member) -> list[TopicPartition]:
    if not member.assignment:
        return []
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise not_convertible(group.group_id, "its members use an assignor of their own, whose data would be lost")
    return assignment.assigned_partitions


def partitions_by_id(parts: Collection[TopicPartition], image: MetadataImage) -> Assignment:
    """Partitions by topic id, of those topics that there are."""
    return {
        image.topics[part.topic].topic_id: frozenset(part.partitions)
        for part in parts
        if part.topic in image.topics and part.partitions
    }


# Back to the classic protocol


def classic_group(
    group: ConsumerGroup, contents: Contents, budget: MemoryBudget, image: MetadataImage, at_ms: int
) -> Group:
    """A consumer group whose members all speak the classic protocol, as a classic group."""
    classic = Group(group.group_id, group.shard, budget, at_ms)
    classic.offsets = group.offsets
    classic.is_logged = True
    classic.generation_id = contents.epoch
    for member in contents.members.values():
        classic.add(_classic_member(member), CONSUMER_PROTOCOL_TYPE)
    classic.protocol_name = classic.select_protocol()
    classic.subscribed_topics = classic.compute_subscribed_topics()
    classic.state = STABLE
    for each in classic.members.values():
        target = contents.targets.get(each.member_id, {})
        each.assignment = classic_assignment(target, each.metadata(classic.protocol_name), image)
    return classic


def _classic_member(member: ConsumerMember) -> Member:
    assert member.classic is not None, "only members of the classic protocol are left"
    return Member(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.classic.protocols,
    )


def classic_assignment(assignment: Assignment, subscription: bytes, image: MetadataImage) -> bytes:
    """Partitions as a member of the classic protocol is told them, in the version of its own *subscription*.

    One whose version cannot be read is told in the first.
    """
    parts = [
        TopicPartition(topic=image.topics_by_id[topic_id].name, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
        if topic_id in image.topics_by_id
    ]
    try:
        version = version_of(subscription)
    except MalformedError:
        version = 0
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=parts), version)
