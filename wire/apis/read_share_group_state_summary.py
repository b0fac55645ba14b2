"""ReadShareGroupStateSummary (key 87): the start offsets of a share group, without record states (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string, uuid


class PartitionData(Struct):
    """One partition."""

    partition: int = int32()
    leader_epoch: int = int32()  # -1: the receiver does not check it


class ReadStateSummaryData(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionData] = array(PartitionData)


class ReadShareGroupStateSummaryRequest(Request, api_key=87, versions="0-1", flexible="0+"):
    """Request the start offsets of the group in the given partitions."""

    group_id: str = string(entity=GROUP)
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


class PartitionResult(Struct):
    """The start offset of the group in one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    state_epoch: int = int32()  # raised with each initialization of the partition
    leader_epoch: int = int32()  # the epoch of the leader that wrote the state last
    start_offset: int = int64()  # the first offset whose record is not settled; -1 if not yet known
    # the number of settled records from start_offset on (KIP-1226); -1 if unknown
    delivery_complete_count: int = int32(versions="1+", default=-1)


class ReadStateSummaryResult(Struct):
    """The start offsets of the group in one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionResult] = array(PartitionResult)


class ReadShareGroupStateSummaryResponse(Response, api_key=87, versions="0-1", flexible="0+"):
    """The start offsets of the group."""

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
