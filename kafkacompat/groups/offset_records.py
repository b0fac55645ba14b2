"""The records of committed offsets in `__consumer_offsets`, in Kafka's own format."""

from __future__ import annotations

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.coordination.record_format import encode_key, encode_value
from kafkacompat.groups.committed_offset import NO_TIMESTAMP, CommittedOffset
from kafkacompat.wire.primitives import ZERO_UUID
from kafkacompat.wire.schema import Message, int32, int64, string, uuid

NO_LEADER_EPOCH = -1
OFFSET_COMMIT_TYPE = 1
OLD_OFFSET_COMMIT_TYPE = 0
"""The kind that Kafka wrote before 0.9.0."""


class OffsetCommitKey(Message, versions="0"):
    """The group and the partition of an offset."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    """A committed offset. Only version 1 has a time of expiry, so it is written for commits that name one."""

    offset: int = int64()
    leader_epoch: int = int32(versions="3+", default=-1)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(versions="1", default=-1)
    topic_id: bytes = uuid(versions="4+", tag=0)


def offset_record(
    group_id: str, topic: str, partition: int, committed: CommittedOffset, *, with_topic_id: bool = True
) -> Record:
    """Return the record of one commit; without *with_topic_id* in a version that has no topic id."""
    version = _offset_value_version(committed, with_topic_id)
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    return _offset_key(group_id, topic, partition), encode_value(value, version)


def _offset_value_version(committed: CommittedOffset, with_topic_id: bool) -> int:
    """Return the oldest version that holds everything: an older Kafka that gets the log back may not read newer ones."""
    if committed.expire_timestamp_ms == NO_TIMESTAMP:
        if committed.topic_id != ZERO_UUID and with_topic_id:
            return 4
        if committed.leader_epoch != NO_LEADER_EPOCH:
            return 3
    return 1


def offset_tombstone(group_id: str, topic: str, partition: int) -> Record:
    """Return the record that deletes an offset."""
    return _offset_key(group_id, topic, partition), None


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return encode_key(OFFSET_COMMIT_TYPE, OffsetCommitKey(group=group_id, topic=topic, partition=partition))
