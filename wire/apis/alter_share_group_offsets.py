"""AlterShareGroupOffsets (key 91): change the start offsets of an empty share group (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequestPartition(Struct):
    """The new start offset in one partition."""

    partition_index: int = int32()
    start_offset: int = int64()  # the offset of the first record to deliver


class AlterShareGroupOffsetsRequestTopic(Struct):
    """The new start offsets in one topic."""

    topic_name: str = string(entity=TOPIC)
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(AlterShareGroupOffsetsRequestPartition)


class AlterShareGroupOffsetsRequest(Request, api_key=91, versions="0", flexible="0+"):
    """Set the start offsets of the group."""

    group_id: str = string(entity=GROUP)
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic)


class AlterShareGroupOffsetsResponsePartition(Struct):
    """The outcome for one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)


class AlterShareGroupOffsetsResponseTopic(Struct):
    """The outcomes for one topic."""

    topic_name: str = string(entity=TOPIC)
    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(AlterShareGroupOffsetsResponsePartition)


class AlterShareGroupOffsetsResponse(Response, api_key=91, versions="0", flexible="0+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(AlterShareGroupOffsetsResponseTopic)
