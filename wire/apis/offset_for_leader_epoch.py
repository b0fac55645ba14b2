"""OffsetForLeaderEpoch (key 23): where a leader epoch ends, to notice that a log was truncated."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class OffsetForLeaderPartition(Struct):
    """The epoch asked about in one partition."""

    partition: int = int32()
    current_leader_epoch: int = int32(versions="2+", default=-1)  # -1: the receiver does not check it
    leader_epoch: int = int32()  # the one whose end is wanted


class OffsetForLeaderTopic(Struct):
    """The epochs asked about in one topic."""

    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


class OffsetForLeaderEpochRequest(Request, api_key=23, versions="0-4", flexible="4+"):
    """Where do these leader epochs end?"""

    # -1: a consumer, -2: a tool that may see what is not replicated yet
    replica_id: int = int32(versions="3+", default=-2)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


class EpochEndOffset(Struct):
    """The last epoch not above the one asked about, and the offset after its last record."""

    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32(versions="1+", default=-1)  # -1 when there is none
    end_offset: int = int64(default=-1)  # -1 when there is none


class OffsetForLeaderTopicResult(Struct):
    """The answers for one topic."""

    topic: str = string()
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


class OffsetForLeaderEpochResponse(Response, api_key=23, versions="0-4", flexible="4+"):
    """Where the epochs end."""

    throttle_time_ms: int = int32(versions="2+")
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)
