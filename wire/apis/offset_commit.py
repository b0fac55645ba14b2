"""OffsetCommit (key 8): commit offsets of a group."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string, uuid


class OffsetCommitRequestPartition(Struct):
    """The committed offset of one partition: that of the next record to read."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="6+", default=-1)  # -1 if unknown
    commit_timestamp: int = int64(versions="1", default=-1)  # in ms since 1970; -1: now
    committed_metadata: str | None = string(nullable="0+")  # the client's metadata, any text


class OffsetCommitRequestTopic(Struct):
    """The offsets for one topic."""

    name: str = string(versions="0-9", entity=TOPIC)
    topic_id: bytes = uuid(versions="10+", entity=TOPIC_ID)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


class OffsetCommitRequest(Request, api_key=8, versions="0-10", flexible="8+"):
    """Commit the given offsets of a group."""

    group_id: str = string(entity=GROUP)
    generation_id_or_member_epoch: int = int32(versions="1+", default=-1)  # -1 for a commit outside of group membership
    member_id: str = string(versions="1+")
    group_instance_id: str | None = string(versions="7+", nullable="0+", default=None)
    retention_time_ms: int = int64(versions="2-4", default=-1)  # -1: the broker's default
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


class OffsetCommitResponsePartition(Struct):
    """The outcome for one partition."""

    partition_index: int = int32()
    error_code: int = int16()


class OffsetCommitResponseTopic(Struct):
    """The outcomes for one topic."""

    name: str = string(versions="0-9", entity=TOPIC)
    topic_id: bytes = uuid(versions="10+", entity=TOPIC_ID)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


class OffsetCommitResponse(Response, api_key=8, versions="0-10", flexible="8+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32(versions="3+")
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
