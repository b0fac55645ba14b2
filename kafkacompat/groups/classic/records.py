"""The records of classic groups in `__consumer_offsets`, in Kafka's own format."""

from __future__ import annotations

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.coordination.record_format import encode_key, encode_value
from kafkacompat.wire.schema import Message, Struct, array, bytestring, int32, int64, string

GROUP_METADATA_TYPE = 2

GROUP_VALUE_VERSION = 3
"""As in Kafka 4.3.1. Version 4 has no further field, and an older Kafka could not read it."""


class GroupMetadataKey(Message, versions="0"):
    """The group of a record."""

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
    """A generation with its members and their assignments."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64(versions="2+", default=-1)
    members: list[MemberMetadata] = array(MemberMetadata)


def group_record(group_id: str, value: GroupMetadataValue) -> Record:
    """Return the record of a group's generation."""
    return _group_key(group_id), encode_value(value, GROUP_VALUE_VERSION)


def group_tombstone(group_id: str) -> Record:
    """Return the record that deletes a group."""
    return _group_key(group_id), None


def _group_key(group_id: str) -> bytes:
    return encode_key(GROUP_METADATA_TYPE, GroupMetadataKey(group=group_id))
