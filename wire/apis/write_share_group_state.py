"""WriteShareGroupState (key 85): have the share coordinator note what became of a partition's records (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, int64, string, uuid


class StateBatch(Struct):
    """A range of records that share one fate."""

    first_offset: int = int64()
    last_offset: int = int64()  # inclusive
    delivery_state: int = int8()  # 0: available, 2: acknowledged, 4: archived
    delivery_count: int = int16()  # how often they were handed out


class PartitionData(Struct):
    """What has changed in one partition."""

    partition: int = int32()
    state_epoch: int = int32()  # the one read; an older one is fenced
    leader_epoch: int = int32()  # of the leader that writes; an older one is fenced
    start_offset: int = int64()  # below it all is settled; -1: as before
    # how many from start_offset on are settled already (KIP-1226); -1: not known
    delivery_complete_count: int = int32(versions="1+", default=-1)
    state_batches: list[StateBatch] = array(StateBatch)


class WriteStateData(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class WriteShareGroupStateRequest(Request, api_key=85, versions="0-1", flexible="0+"):
    """Note this."""

    group_id: str = string()
    topics: list[WriteStateData] = array(WriteStateData)


class PartitionResult(Struct):
    """The outcome for one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class WriteStateResult(Struct):
    """The outcomes for one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class WriteShareGroupStateResponse(Response, api_key=85, versions="0-1", flexible="0+"):
    """The outcome for each partition."""

    results: list[WriteStateResult] = array(WriteStateResult)
