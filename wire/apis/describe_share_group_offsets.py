"""DescribeShareGroupOffsets (key 90): the start offsets and the lag of share groups (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequestTopic(Struct):
    """The partitions of one topic."""

    topic_name: str = string(entity=TOPIC)
    partitions: list[int] = array(int32())


class DescribeShareGroupOffsetsRequestGroup(Struct):
    """The partitions of one group to describe."""

    group_id: str = string(entity=GROUP)
    # null: all partitions that the group has a state for
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        DescribeShareGroupOffsetsRequestTopic, nullable="0+"
    )


class DescribeShareGroupOffsetsRequest(Request, api_key=90, versions="0-1", flexible="0+"):
    """Request the start offsets of the given groups."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(DescribeShareGroupOffsetsRequestGroup)


class DescribeShareGroupOffsetsResponsePartition(Struct):
    """The start offset and the lag of a group in one partition."""

    partition_index: int = int32()
    start_offset: int = int64()  # the first offset whose record is not settled; -1 if unknown
    leader_epoch: int = int32()  # the epoch of the leader that wrote the state last
    lag: int = int64(versions="1+", default=-1)  # the number of records not yet settled (KIP-1226); -1 if unknown
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    """The start offsets of a group in one topic."""

    topic_name: str = string(entity=TOPIC)
    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(DescribeShareGroupOffsetsResponsePartition)


class DescribeShareGroupOffsetsResponseGroup(Struct):
    """The start offsets of one group."""

    group_id: str = string(entity=GROUP)
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(DescribeShareGroupOffsetsResponseTopic)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)


class DescribeShareGroupOffsetsResponse(Response, api_key=90, versions="0-1", flexible="0+"):
    """The start offsets of each group."""

    throttle_time_ms: int = int32()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(DescribeShareGroupOffsetsResponseGroup)
