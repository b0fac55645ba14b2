"""ReadShareGroupState (key 84): ask the share coordinator what became of a partition's records (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, int64, string, uuid


class PartitionData(Struct):
    """One partition."""

    partition: int = int32()
    leader_epoch: int = int32()  # of the leader that asks; an older one is fenced


class ReadStateData(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class ReadShareGroupStateRequest(Request, api_key=84, versions="0", flexible="0+"):
    """How far is the group with these?"""

    group_id: str = string()
    topics: list[ReadStateData] = array(ReadStateData)


class StateBatch(Struct):
    """A range of records that share one fate."""

    first_offset: int = int64()
    last_offset: int = int64()  # inclusive
    delivery_state: int = int8()  # 0: available, 2: acknowledged, 4: archived
    delivery_count: int = int16()  # how often they were handed out


class PartitionResult(Struct):
    """How far the group is with one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()  # counts how often the partition was begun with
    start_offset: int = int64()  # below it all is settled; -1: not known yet
    state_batches: list[StateBatch] = array(StateBatch)


class ReadStateResult(Struct):
    """How far the group is with one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class ReadShareGroupStateResponse(Response, api_key=84, versions="0", flexible="0+"):
    """How far the group is."""

    results: list[ReadStateResult] = array(ReadStateResult)
