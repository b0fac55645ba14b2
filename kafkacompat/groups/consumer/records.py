"""The records of consumer groups in `__consumer_offsets`, in Kafka's own format (key types 3 to 8, and 16).

A `Change` is a record before it is bytes: (key, value), or (key, None) for what is deleted.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.coordination.record_format import write_key, write_value
from kafkacompat.groups.consumer.member import Assignment, ClassicMetadata, ConsumerMember, Holding
from kafkacompat.wire.schema import Message, Struct, array, bytestring, int8, int32, int64, string, uuid
from kafkacompat.wire.schema import struct as struct_field

VALUE_VERSION = 0


class Key(Message, versions="0"):
    """What a record is about; ``TYPE`` precedes it in the log."""

    TYPE: ClassVar[int]
    group_id: str


class GroupKey(Key, versions="0"):
    """A group's epoch."""

    TYPE = 3
    group_id: str = string()


class PartitionMetadataKey(Key, versions="0"):
    """What a group knew of its topics, as Kafka up to 4.0 kept it; only ever deleted since."""

    TYPE = 4
    group_id: str = string()


class MemberKey(Key, versions="0"):
    """What a member says of itself."""

    TYPE = 5
    group_id: str = string()
    member_id: str = string()


class TargetKey(Key, versions="0"):
    """The epoch that the targets were made for."""

    TYPE = 6
    group_id: str = string()


class MemberTargetKey(Key, versions="0"):
    """What a member shall have."""

    TYPE = 7
    group_id: str = string()
    member_id: str = string()


class MemberCurrentKey(Key, versions="0"):
    """What a member has."""

    TYPE = 8
    group_id: str = string()
    member_id: str = string()


class PatternKey(Key, versions="0"):
    """A pattern that members are subscribed to."""

    TYPE = 16
    group_id: str = string()
    regular_expression: str = string()


class GroupValue(Message, versions="0", flexible="0+"):
    """See GroupKey."""

    epoch: int = int32()
    metadata_hash: int = int64(tag=0)  # of the topics of all members


class PartitionRacks(Struct):
    """In which racks the replicas of a partition are."""

    partition: int = int32()
    racks: list[str] = array(string())


class TopicMetadata(Struct):
    """What was known of one topic."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: list[PartitionRacks] = array(PartitionRacks)


class PartitionMetadataValue(Message, versions="0", flexible="0+"):
    """See PartitionMetadataKey."""

    topics: list[TopicMetadata] = array(TopicMetadata)


class ClassicProtocol(Struct):
    """One assignor that a member of the classic protocol knows."""

    name: str = string()
    metadata: bytes = bytestring()


class ClassicMember(Struct):
    """What a member of the classic protocol has besides."""

    session_timeout_ms: int = int32()
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


class MemberValue(Message, versions="0", flexible="0+"):
    """See MemberKey."""

    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string())
    subscribed_topic_regex: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+")
    classic_member_metadata: ClassicMember | None = struct_field(ClassicMember, nullable="0+", tag=0)


class TargetValue(Message, versions="0", flexible="0+"):
    """See TargetKey."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)  # when they were made, in ms


class TargetPartitions(Struct):
    """Some partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[int] = array(int32())


class MemberTargetValue(Message, versions="0", flexible="0+"):
    """See MemberTargetKey."""

    topic_partitions: list[TargetPartitions] = array(TargetPartitions)


class HeldPartitions(Struct):
    """Some partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[int] = array(int32())
    # since when each is the member's; null in what Kafka before 4.2 wrote
    assignment_epochs: list[int] | None = array(int32(), nullable="0+", default=None, tag=0)


class MemberCurrentValue(Message, versions="0", flexible="0+"):
    """See MemberCurrentKey."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[HeldPartitions] = array(HeldPartitions)
    partitions_pending_revocation: list[HeldPartitions] = array(HeldPartitions)


class PatternValue(Message, versions="0", flexible="0+"):
    """See PatternKey: the topics that the pattern matched."""

    topics: list[str] = array(string())
    version: int = int64()  # of the metadata that it was matched against
    timestamp: int = int64()


Change: TypeAlias = "tuple[Key, Message | None]"

VALUES: dict[type[Key], type[Message]] = {
    GroupKey: GroupValue,
    PartitionMetadataKey: PartitionMetadataValue,
    MemberKey: MemberValue,
    TargetKey: TargetValue,
    MemberTargetKey: MemberTargetValue,
    MemberCurrentKey: MemberCurrentValue,
    PatternKey: PatternValue,
}


def write(change: Change) -> Record:
    """A change as it stands in the log."""
    key, value = change
    return write_key(key.TYPE, key), None if value is None else write_value(value, VALUE_VERSION)


# Values of members


def member_value(member: ConsumerMember) -> MemberValue:
    """What a member says of itself."""
    return MemberValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.pattern,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=_classic_value(member.classic),
    )


def _classic_value(classic: ClassicMetadata | None) -> ClassicMember | None:
    if classic is None:
        return None
    protocols = [ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols]
    return ClassicMember(session_timeout_ms=classic.session_timeout_ms, supported_protocols=protocols)


def target_value(assignment: Assignment) -> MemberTargetValue:
    """What a member shall have."""
    parts = [
        TargetPartitions(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
    ]
    return MemberTargetValue(topic_partitions=parts)


def current_value(member: ConsumerMember) -> MemberCurrentValue:
    """What a member has."""
    return MemberCurrentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_held(member.assigned),
        partitions_pending_revocation=_held(member.pending_revocation),
    )


def _held(holding: Holding) -> list[HeldPartitions]:
    return [
        HeldPartitions(topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic_id, epochs in holding.items()
    ]
