"""The records of committed offsets in `__consumer_offsets`, in Kafka's own format."""

from __future__ import annotations

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.coordination.record_format import write_key, write_value
from kafkacompat.groups.committed_offset import NO_TIMESTAMP, CommittedOffset
from kafkacompat.wire.primitives import ZERO_UUID
from kafkacompat.wire.schema import Message, int32, int64, string, uuid

NO_LEADER_EPOCH = -1
OFFSET_COMMIT_TYPE = 1
OLD_OFFSET_COMMIT_TYPE = 0
"""As Kafka wrote it before 0.9.0."""


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
    return _offset_key(group_id, topic, partition), write_value(value, version)


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


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return write_key(OFFSET_COMMIT_TYPE, OffsetCommitKey(group=group_id, topic=topic, partition=partition))
