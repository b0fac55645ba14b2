"""OffsetForLeaderEpoch (key 23): the end offset of a leader epoch, which reveals a truncation of the log."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class OffsetForLeaderPartition(Struct):
    """The requested epoch of one partition."""

    partition: int = int32()
    current_leader_epoch: int = int32(versions="2+", default=-1)  # -1: the receiver does not check it
    leader_epoch: int = int32()  # the epoch whose end offset is requested


class OffsetForLeaderTopic(Struct):
    """The requested epochs of one topic."""

    topic: str = string(entity=TOPIC)
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


class OffsetForLeaderEpochRequest(Request, api_key=23, versions="0-4", flexible="4+"):
    """Request the end offsets of the given leader epochs."""

    # -1: a consumer, -2: a tool that may read records not yet replicated
    replica_id: int = int32(versions="3+", default=-2, entity=BROKER)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


class EpochEndOffset(Struct):
    """The largest epoch not above the requested one, and the offset after its last record."""

    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32(versions="1+", default=-1)  # -1 if there is none
    end_offset: int = int64(default=-1)  # -1 if there is none


class OffsetForLeaderTopicResult(Struct):
    """The end offsets of one topic."""

    topic: str = string(entity=TOPIC)
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


class OffsetForLeaderEpochResponse(Response, api_key=23, versions="0-4", flexible="4+"):
    """The end offsets of the epochs."""

    throttle_time_ms: int = int32(versions="2+")
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)
