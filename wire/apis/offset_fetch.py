"""OffsetFetch (key 9): the committed offsets of groups."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string, uuid


class OffsetFetchRequestTopic(Struct):
    """Partitions of one topic, up to version 7."""

    name: str = string(entity=TOPIC)
    partition_indexes: list[int] = array(int32())


class OffsetFetchRequestTopics(Struct):
    """Partitions of one topic, from version 8."""

    name: str = string(versions="8-9", entity=TOPIC)
    topic_id: bytes = uuid(versions="10+", entity=TOPIC_ID)
    partition_indexes: list[int] = array(int32())


class OffsetFetchRequestGroup(Struct):
    """One group and its requested partitions, from version 8."""

    group_id: str = string(entity=GROUP)
    member_id: str | None = string(versions="9+", nullable="0+", default=None)  # null if the client is no member
    member_epoch: int = int32(versions="9+", default=-1)  # -1 if the client is no member
    # null: all partitions with an offset
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, nullable="0+")


class OffsetFetchRequest(Request, api_key=9, versions="0-10", flexible="6+"):
    """Request the offsets of one group (up to version 7) or of several (from 8)."""

    group_id: str = string(versions="0-7", entity=GROUP)
    # null: all partitions with an offset
    topics: list[OffsetFetchRequestTopic] | None = array(OffsetFetchRequestTopic, versions="0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, versions="8+")
    # the broker returns an error while a pending transaction may change the offset (KIP-447)
    require_stable: bool = boolean(versions="7+")


class OffsetFetchResponsePartition(Struct):
    """The offset of one partition, up to version 7."""

    partition_index: int = int32()
    committed_offset: int = int64()  # -1 if there is none
    committed_leader_epoch: int = int32(versions="5-7", default=-1)  # -1 if unknown
    metadata: str | None = string(nullable="0+")  # the client's metadata, any text
    error_code: int = int16()


class OffsetFetchResponseTopic(Struct):
    """The offsets in one topic, up to version 7."""

    name: str = string(entity=TOPIC)
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition)


class OffsetFetchResponsePartitions(Struct):
    """The offset of one partition, from version 8."""

    partition_index: int = int32()
    committed_offset: int = int64()  # -1 if there is none
    committed_leader_epoch: int = int32(default=-1)  # -1 if unknown
    metadata: str | None = string(nullable="0+")  # the client's metadata, any text
    error_code: int = int16()


class OffsetFetchResponseTopics(Struct):
    """The offsets in one topic, from version 8."""

    name: str = string(versions="8-9", entity=TOPIC)
    topic_id: bytes = uuid(versions="10+", entity=TOPIC_ID)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions)


class OffsetFetchResponseGroup(Struct):
    """The offsets of one group, from version 8."""

    group_id: str = string(entity=GROUP)
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics)
    error_code: int = int16()


class OffsetFetchResponse(Response, api_key=9, versions="0-10", flexible="6+"):
    """The offsets, of one group (up to version 7) or of several (from 8)."""

    throttle_time_ms: int = int32(versions="3+")
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, versions="0-7")
    error_code: int = int16(versions="2-7")
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, versions="8+")
