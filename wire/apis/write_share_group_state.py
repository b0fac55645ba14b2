"""WriteShareGroupState (key 85): store the delivery state of a partition's records (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, int64, string, uuid


class StateBatch(Struct):
    """A range of records with the same delivery state."""

    first_offset: int = int64()
    last_offset: int = int64()  # the last offset, inclusive
    delivery_state: int = int8()  # 0: available, 2: acknowledged, 4: archived
    delivery_count: int = int16()  # the number of deliveries


class PartitionData(Struct):
    """The changed state of one partition."""

    partition: int = int32()
    state_epoch: int = int32()  # the state epoch as last read; the coordinator fences an older epoch
    leader_epoch: int = int32()  # the epoch of the writing leader; the coordinator fences an older epoch
    start_offset: int = int64()  # the first offset whose record is not settled; -1: unchanged
    # the number of settled records from start_offset on (KIP-1226); -1 if unknown
    delivery_complete_count: int = int32(versions="1+", default=-1)
    state_batches: list[StateBatch] = array(StateBatch)


class WriteStateData(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionData] = array(PartitionData)


class WriteShareGroupStateRequest(Request, api_key=85, versions="0-1", flexible="0+"):
    """Store the given states at the share coordinator."""

    group_id: str = string(entity=GROUP)
    topics: list[WriteStateData] = array(WriteStateData)


class PartitionResult(Struct):
    """The outcome for one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)


class WriteStateResult(Struct):
    """The outcomes for one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionResult] = array(PartitionResult)


class WriteShareGroupStateResponse(Response, api_key=85, versions="0-1", flexible="0+"):
    """The outcome for each partition."""

    results: list[WriteStateResult] = array(WriteStateResult)
