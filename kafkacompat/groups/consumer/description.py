"""ConsumerGroupDescribe: one group with its members, their assignments and their targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.member import ConsumerMember
from kafkacompat.groups.consumer.retargeting import find_preferred_assignor
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.wire.apis.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe_consumer_group(
    group: ConsumerGroup, default_assignor: str, image: MetadataImage
) -> tuple[DescribedGroup, Iterator[Member]]:
    """Describe a consumer group without its members, and the members one by one as they are now."""
    contents = group.contents
    described = DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=contents.epoch,
        assignment_epoch=contents.assignment_epoch,
        assignor_name=find_preferred_assignor(contents.members.values()) or default_assignor,
    )
    # Members and targets are values, which later changes replace.
    present = [(member, contents.targets.get(member.member_id, {})) for member in contents.members.values()]
    return described, (_describe_member(member, target, image) for member, target in present)


def _describe_member(member: ConsumerMember, target: Mapping[bytes, Iterable[int]], image: MetadataImage) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.pattern,
        # A member reads partitions pending revocation until it gives them up.
        assignment=_describe_assignment((member.assigned, member.pending_revocation), image),
        target_assignment=_describe_assignment((target,), image),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _describe_assignment(holdings: Iterable[Mapping[bytes, Iterable[int]]], image: MetadataImage) -> Assignment:
    partitions: dict[bytes, set[int]] = {}
    for holding in holdings:
        for topic_id, numbers in holding.items():
            partitions.setdefault(topic_id, set()).update(numbers)
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id, topic_name=image.topics_by_id[topic_id].name, partitions=sorted(partitions[topic_id])
            )
            for topic_id in partitions
            if topic_id in image.topics_by_id
        ]
    )
