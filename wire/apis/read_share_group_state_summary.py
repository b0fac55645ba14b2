"""ReadShareGroupStateSummary (key 87): where a share group stands, without each record (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string, uuid


class PartitionData(Struct):
    """One partition."""

    partition: int = int32()
    leader_epoch: int = int32()  # -1: the receiver does not check it


class ReadStateSummaryData(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class ReadShareGroupStateSummaryRequest(Request, api_key=87, versions="0-1", flexible="0+"):
    """Where does the group stand?"""

    group_id: str = string()
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


class PartitionResult(Struct):
    """Where the group stands in one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()  # counts how often the partition was begun with
    leader_epoch: int = int32()  # of the leader that wrote last
    start_offset: int = int64()  # below it all is settled; -1: not known yet
    # how many from start_offset on are settled already (KIP-1226); -1: not known
    delivery_complete_count: int = int32(versions="1+", default=-1)


class ReadStateSummaryResult(Struct):
    """Where the group stands in one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class ReadShareGroupStateSummaryResponse(Response, api_key=87, versions="0-1", flexible="0+"):
    """Where the group stands."""

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
