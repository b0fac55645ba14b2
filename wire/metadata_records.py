"""The records of `__cluster_metadata`, the log of Kafka's KRaft controllers (KIP-500, KIP-631).

A record's value begins with three unsigned varints: the version of the frame, the record's type and its version; the
fields follow. Records have no key. Declared here are the types about topics, configurations, quotas, passwords, delegation
tokens, access rules and producer ids, with the versions of Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkacompat.wire.compiler import decode_message, encode_message
from kafkacompat.wire.primitives import Buffer, MalformedError, encode_uvarint, read_uvarint
from kafkacompat.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    bytestring,
    float64,
    int8,
    int32,
    int64,
    string,
    uuid,
)

FRAME_VERSION = 1
NO_LEADER_CHANGE = -2
"""`PartitionChangeRecord.leader`: the leader stays, and so does its epoch."""


class TopicRecord(Message, versions="0", flexible="0+"):
    """A topic is created, without partitions yet."""

    name: str = string()
    topic_id: bytes = uuid()


class PartitionRecord(Message, versions="0-2", flexible="0+"):
    """A partition's complete state, which replaces an earlier one."""

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    replicas: list[int] = array(int32())
    isr: list[int] = array(int32())
    removing_replicas: list[int] = array(int32())
    adding_replicas: list[int] = array(int32())
    leader: int = int32(default=-1)
    leader_recovery_state: int = int8(tag=0)
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: list[bytes] = array(uuid(), versions="1+")
    eligible_leader_replicas: list[int] | None = array(int32(), versions="2+", nullable="2+", default=None, tag=1)
    last_known_elr: list[int] | None = array(int32(), versions="2+", nullable="2+", default=None, tag=2)


class ConfigRecord(Message, versions="0", flexible="0+"):
    """One config of a topic, a broker ("" is all of them) or another resource; the value None deletes it."""

    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable="0+")


class PartitionChangeRecord(Message, versions="0-2", flexible="0+"):
    """A change of a partition; None, and NO_LEADER_CHANGE for the leader, stand for no change.

    A change that names a leader raises the leader epoch by one; every change raises the partition epoch.
    """

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    isr: list[int] | None = array(int32(), nullable="0+", default=None, tag=0)
    leader: int = int32(default=NO_LEADER_CHANGE, tag=1)
    replicas: list[int] | None = array(int32(), nullable="0+", default=None, tag=2)
    removing_replicas: list[int] | None = array(int32(), nullable="0+", default=None, tag=3)
    adding_replicas: list[int] | None = array(int32(), nullable="0+", default=None, tag=4)
    leader_recovery_state: int = int8(default=-1, tag=5)
    directories: list[bytes] | None = array(uuid(), versions="1+", nullable="1+", default=None, tag=8)
    eligible_leader_replicas: list[int] | None = array(int32(), versions="2+", nullable="2+", default=None, tag=6)
    last_known_elr: list[int] | None = array(int32(), versions="2+", nullable="2+", default=None, tag=7)


class RemoveTopicRecord(Message, versions="0", flexible="0+"):
    """A topic is deleted, with its partitions and its configuration."""

    topic_id: bytes = uuid()


class DelegationTokenRecord(Message, versions="0", flexible="0+"):
    """A delegation token without its secret, which replaces an earlier state; principals are TYPE:NAME, times milliseconds."""

    owner: str = string()
    requester: str = string()
    renewers: list[str] = array(string())
    issue_timestamp: int = int64()
    max_timestamp: int = int64()
    expiration_timestamp: int = int64()
    token_id: str = string()


class UserScramCredentialRecord(Message, versions="0", flexible="0+"):
    """The SCRAM keys of a user's password."""

    name: str = string()
    mechanism: int = int8()
    salt: bytes = bytestring()
    stored_key: bytes = bytestring()
    server_key: bytes = bytestring()
    iterations: int = int32()


class EntityData(Struct):
    """One component of a quota's entity; the name None is the default of its type."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


class ClientQuotaRecord(Message, versions="0", flexible="0+"):
    """One quota of users, client ids or addresses, set or removed."""

    entity: list[EntityData] = array(EntityData)
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


class ProducerIdsRecord(Message, versions="0", flexible="0+"):
    """A broker receives a block of producer ids; the next block begins at `next_producer_id`."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()


class RemoveUserScramCredentialRecord(Message, versions="0", flexible="0+"):
    """A user's password is deleted."""

    name: str = string()
    mechanism: int = int8()


class AccessControlEntryRecord(Message, versions="0", flexible="0+"):
    """An access rule (ACL) is added; `wire/apis/describe_acls.py` explains the codes."""

    id: bytes = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class RemoveAccessControlEntryRecord(Message, versions="0", flexible="0+"):
    """An access rule is removed."""

    id: bytes = uuid()


class RemoveDelegationTokenRecord(Message, versions="0", flexible="0+"):
    """A delegation token is removed."""

    token_id: str = string()


class BeginTransactionRecord(Message, versions="0", flexible="0+"):
    """The following records take effect at the EndTransactionRecord (KIP-868)."""

    name: str | None = string(nullable="0+", default=None, tag=0)


class EndTransactionRecord(Message, versions="0", flexible="0+"):
    """The records since the BeginTransactionRecord take effect."""


class AbortTransactionRecord(Message, versions="0", flexible="0+"):
    """The records since the BeginTransactionRecord are dropped."""

    reason: str | None = string(nullable="0+", default=None, tag=0)


RECORD_TYPES: Mapping[int, type[Message]] = {
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    5: PartitionChangeRecord,
    9: RemoveTopicRecord,
    10: DelegationTokenRecord,
    11: UserScramCredentialRecord,
    14: ClientQuotaRecord,
    15: ProducerIdsRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    22: RemoveUserScramCredentialRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
    26: RemoveDelegationTokenRecord,
}

_TYPE_NUMBERS: Mapping[type[Message], int] = {record: number for number, record in RECORD_TYPES.items()}


def read_metadata_record(value: Buffer) -> Message | None:
    """Read a record's value; None for a type that is not declared here. Raises MalformedError.

    Raises MalformedError for a version newer than the declared ones, as its meaning is unknown.
    """
    frame_version, position = read_uvarint(value, 0)
    number, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    if frame_version != FRAME_VERSION:
        raise MalformedError(f"a metadata record has frame version {frame_version}, but only {FRAME_VERSION} is known")
    record = RECORD_TYPES.get(number)
    if record is None:
        return None
    if version not in record.VERSIONS:
        raise MalformedError(f"a {record.__name__} has version {version}, which is not known")
    return decode_message(record, memoryview(value)[position:], version)


def write_metadata_record(record: Message, version: int = 0) -> bytes:
    """Write a record's value; `read_metadata_record` reads it."""
    frame = encode_uvarint(FRAME_VERSION) + encode_uvarint(_TYPE_NUMBERS[type(record)]) + encode_uvarint(version)
    return frame + encode_message(record, version)
