"""DescribeShareGroupOffsets (key 90): where share groups stand (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequestTopic(Struct):
    """The partitions of one topic."""

    topic_name: str = string()
    partitions: list[int] = array(int32())


class DescribeShareGroupOffsetsRequestGroup(Struct):
    """What to tell of one group."""

    group_id: str = string()
    # null: all that it has a state of
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        DescribeShareGroupOffsetsRequestTopic, nullable="0+"
    )


class DescribeShareGroupOffsetsRequest(Request, api_key=90, versions="0-1", flexible="0+"):
    """Where do these groups stand?"""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(DescribeShareGroupOffsetsRequestGroup)


class DescribeShareGroupOffsetsResponsePartition(Struct):
    """Where a group stands in one partition."""

    partition_index: int = int32()
    start_offset: int = int64()  # below it all is settled; -1: not known
    leader_epoch: int = int32()  # of the leader that wrote last
    lag: int = int64(versions="1+", default=-1)  # how many records are yet to be settled (KIP-1226); -1: not known
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    """Where a group stands in one topic."""

    topic_name: str = string()
    topic_id: bytes = uuid()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(DescribeShareGroupOffsetsResponsePartition)


class DescribeShareGroupOffsetsResponseGroup(Struct):
    """Where one group stands."""

    group_id: str = string()
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(DescribeShareGroupOffsetsResponseTopic)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class DescribeShareGroupOffsetsResponse(Response, api_key=90, versions="0-1", flexible="0+"):
    """Where each group stands."""

    throttle_time_ms: int = int32()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(DescribeShareGroupOffsetsResponseGroup)
