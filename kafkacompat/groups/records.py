"""The records of `__consumer_offsets`, in Kafka's own format.

A key starts with an int16 that says what the record is about, a value with the int16 version it was
written in; a null value deletes. Kafka's formatters and DumpLogSegments read these, and we read Kafka's.
Of the kinds that Kafka writes, those of classic groups and of offsets are known here; the rest
(consumer, share and streams groups) is left alone.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.groups.offsets import NO_TIMESTAMP, CommittedOffset
from kafkacompat.wire.compiler import decode, encode
from kafkacompat.wire.primitives import ZERO_UUID, Buffer, MalformedError
from kafkacompat.wire.schema import Message, Struct, array, bytestring, int32, int64, string, uuid

if TYPE_CHECKING:
    from kafkacompat.groups.classic.group import Group

_MessageType = TypeVar("_MessageType", bound=Message)
_PREFIX = struct.Struct(">h")
NO_LEADER_EPOCH = -1


class OffsetCommitKey(Message, versions="0"):
    """Whose offset, in which partition."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    """A committed offset; only version 1 can hold a time of expiry, so only a commit that names one uses it."""

    offset: int = int64()
    leader_epoch: int = int32(versions="3+", default=-1)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(versions="1", default=-1)
    topic_id: bytes = uuid(versions="4+", tag=0)


class GroupMetadataKey(Message, versions="0"):
    """Which group."""

    group: str = string()


class MemberMetadata(Struct):
    """One member of a generation."""

    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32(versions="1+", default=-1)
    session_timeout: int = int32()
    subscription: bytes = bytestring()
    assignment: bytes = bytestring()


class GroupMetadataValue(Message, versions="0-4", flexible="4+"):
    """A generation with its members and what they were assigned."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64(versions="2+", default=-1)
    members: list[MemberMetadata] = array(MemberMetadata)


OFFSET_COMMIT_TYPE = 1
GROUP_METADATA_TYPE = 2
KEY_TYPES: dict[int, type[OffsetCommitKey | GroupMetadataKey]] = {
    0: OffsetCommitKey,  # as written before 0.9.0
    OFFSET_COMMIT_TYPE: OffsetCommitKey,
    GROUP_METADATA_TYPE: GroupMetadataKey,
}

GROUP_VALUE_VERSION = 3
"""As in Kafka 4.3.1: version 4 says nothing more, and an older Kafka that gets the log back would not read it."""


def offset_record(
    group_id: str, topic: str, partition: int, committed: CommittedOffset, *, with_topic_id: bool = True
) -> Record:
    """The record of one commit, in a version that has a place for the topic's id only if it shall have one."""
    version = _offset_value_version(committed, with_topic_id)
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    return _offset_key(group_id, topic, partition), _PREFIX.pack(version) + encode(value, version)


def _offset_value_version(committed: CommittedOffset, with_topic_id: bool) -> int:
    """The oldest one that holds everything: a Kafka that gets the log back may know no newer one."""
    if committed.expire_timestamp_ms == NO_TIMESTAMP:
        if committed.topic_id != ZERO_UUID and with_topic_id:
            return 4
        if committed.leader_epoch != NO_LEADER_EPOCH:
            return 3
    return 1


def offset_tombstone(group_id: str, topic: str, partition: int) -> Record:
    """The record that deletes a commit."""
    return _offset_key(group_id, topic, partition), None


def group_record(group: Group, assignments: Mapping[str, bytes], generation_id: int | None = None) -> Record:
    """The record of a group's generation, or of another one; a member without an assignment is given an empty one."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id if generation_id is None else generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    return _group_key(group.group_id), _PREFIX.pack(GROUP_VALUE_VERSION) + encode(value, GROUP_VALUE_VERSION)


def group_tombstone(group_id: str) -> Record:
    """The record that deletes a group."""
    return _group_key(group_id), None


def read_key(data: Buffer) -> OffsetCommitKey | GroupMetadataKey | None:
    """Read a record's key; None for a kind that is not ours to know. Raises MalformedError."""
    kind, rest = split_version(data)
    message = KEY_TYPES.get(kind)
    return decode(message, rest, 0) if message else None


def read_value(message: type[_MessageType], data: Buffer) -> _MessageType:
    """Read a record's value; raises MalformedError, also for a version newer than Kafka 4.3's."""
    version, rest = split_version(data)
    if version not in message.VERSIONS:
        raise MalformedError(f"{message.__name__} has no version {version}")
    return decode(message, rest, version)


def split_version(data: Buffer) -> tuple[int, Buffer]:
    """The int16 that every key and value begins with, and the rest. Raises MalformedError."""
    if len(data) < _PREFIX.size:
        raise MalformedError(f"a record of {len(data)} bytes has no room for its version")
    return _PREFIX.unpack_from(data)[0], data[_PREFIX.size :]


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return _PREFIX.pack(OFFSET_COMMIT_TYPE) + encode(key, 0)


def _group_key(group_id: str) -> bytes:
    return _PREFIX.pack(GROUP_METADATA_TYPE) + encode(GroupMetadataKey(group=group_id), 0)
