"""The records of consumer groups in `__consumer_offsets`, in Kafka's own format (key types 3 to 8, and 16).

A `RecordChange` is a record as messages: (key, value), or (key, None) for a tombstone.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.coordination.record_format import encode_key, encode_value
from kafkacompat.groups.consumer.member import Assignment, ClassicMetadata, ConsumerMember, Holding
from kafkacompat.wire.schema import Message, Struct, array, bytestring, int8, int32, int64, string, uuid
from kafkacompat.wire.schema import struct as struct_field

VALUE_VERSION = 0


class ConsumerGroupRecordKey(Message, versions="0"):
    """The key of a record; ``TYPE`` precedes it in the log."""

    TYPE: ClassVar[int]
    group_id: str


class GroupKey(ConsumerGroupRecordKey, versions="0"):
    """Key of a group's epoch."""

    TYPE = 3
    group_id: str = string()


class PartitionMetadataKey(ConsumerGroupRecordKey, versions="0"):
    """Key of the metadata of a group's topics, which Kafka up to 4.0 wrote; this broker only deletes it."""

    TYPE = 4
    group_id: str = string()


class MemberKey(ConsumerGroupRecordKey, versions="0"):
    """Key of the fields that a member reports about itself."""

    TYPE = 5
    group_id: str = string()
    member_id: str = string()


class TargetKey(ConsumerGroupRecordKey, versions="0"):
    """Key of the epoch of a group's targets."""

    TYPE = 6
    group_id: str = string()


class MemberTargetKey(ConsumerGroupRecordKey, versions="0"):
    """Key of a member's target."""

    TYPE = 7
    group_id: str = string()
    member_id: str = string()


class MemberCurrentKey(ConsumerGroupRecordKey, versions="0"):
    """Key of a member's epoch, state and assignment."""

    TYPE = 8
    group_id: str = string()
    member_id: str = string()


class PatternKey(ConsumerGroupRecordKey, versions="0"):
    """Key of a pattern that members are subscribed to."""

    TYPE = 16
    group_id: str = string()
    regular_expression: str = string()


class GroupValue(Message, versions="0", flexible="0+"):
    """See GroupKey."""

    epoch: int = int32()
    metadata_hash: int = int64(tag=0)  # of the topics of all members


class PartitionRacks(Struct):
    """The racks of the replicas of a partition."""

    partition: int = int32()
    racks: list[str] = array(string())


class TopicMetadata(Struct):
    """The metadata of one topic."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: list[PartitionRacks] = array(PartitionRacks)


class PartitionMetadataValue(Message, versions="0", flexible="0+"):
    """See PartitionMetadataKey."""

    topics: list[TopicMetadata] = array(TopicMetadata)


class ClassicProtocol(Struct):
    """One assignor that a member of the classic protocol supports."""

    name: str = string()
    metadata: bytes = bytestring()


class ClassicMemberMetadata(Struct):
    """The additional fields of a member of the classic protocol."""

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
    classic_member_metadata: ClassicMemberMetadata | None = struct_field(ClassicMemberMetadata, nullable="0+", tag=0)


class TargetValue(Message, versions="0", flexible="0+"):
    """See TargetKey."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)  # when the targets were computed, ms since 1970


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
    # The epoch in which each partition was assigned; null if Kafka before 4.2 wrote the record.
    assignment_epochs: list[int] | None = array(int32(), nullable="0+", default=None, tag=0)


class MemberCurrentValue(Message, versions="0", flexible="0+"):
    """See MemberCurrentKey."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[HeldPartitions] = array(HeldPartitions)
    partitions_pending_revocation: list[HeldPartitions] = array(HeldPartitions)


class PatternValue(Message, versions="0", flexible="0+"):
    """See PatternKey. The value has the topics that the pattern matched."""

    topics: list[str] = array(string())
    version: int = int64()  # of the metadata that it was matched against
    timestamp: int = int64()


RecordChange: TypeAlias = "tuple[ConsumerGroupRecordKey, Message | None]"

VALUE_TYPES: dict[type[ConsumerGroupRecordKey], type[Message]] = {
    GroupKey: GroupValue,
    PartitionMetadataKey: PartitionMetadataValue,
    MemberKey: MemberValue,
    TargetKey: TargetValue,
    MemberTargetKey: MemberTargetValue,
    MemberCurrentKey: MemberCurrentValue,
    PatternKey: PatternValue,
}


def as_record(change: RecordChange) -> Record:
    """Return a change as a record."""
    key, value = change
    return encode_key(key.TYPE, key), None if value is None else encode_value(value, VALUE_VERSION)


# Values


def build_member_value(member: ConsumerMember) -> MemberValue:
    """Return the value of a `MemberKey`."""
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


def _classic_value(classic: ClassicMetadata | None) -> ClassicMemberMetadata | None:
    if classic is None:
        return None
    protocols = [ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols]
    return ClassicMemberMetadata(session_timeout_ms=classic.session_timeout_ms, supported_protocols=protocols)


def build_target_value(assignment: Assignment) -> MemberTargetValue:
    """Return the value of a `MemberTargetKey`."""
    parts = [
        TargetPartitions(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
    ]
    return MemberTargetValue(topic_partitions=parts)


def build_current_value(member: ConsumerMember) -> MemberCurrentValue:
    """Return the value of a `MemberCurrentKey`."""
    return MemberCurrentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_held_partitions(member.assigned),
        partitions_pending_revocation=_held_partitions(member.pending_revocation),
    )


def _held_partitions(holding: Holding) -> list[HeldPartitions]:
    return [
        HeldPartitions(topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic_id, epochs in holding.items()
    ]
