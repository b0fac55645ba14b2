"""ReadShareGroupState (key 84): read the delivery state of a partition's records (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, int64, string, uuid


class PartitionData(Struct):
    """One partition."""

    partition: int = int32()
    leader_epoch: int = int32()  # the epoch of the requesting leader; the coordinator fences an older epoch


class ReadStateData(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionData] = array(PartitionData)


class ReadShareGroupStateRequest(Request, api_key=84, versions="0", flexible="0+"):
    """Request the state of the given partitions from the share coordinator."""

    group_id: str = string(entity=GROUP)
    topics: list[ReadStateData] = array(ReadStateData)


class StateBatch(Struct):
    """A range of records with the same delivery state."""

    first_offset: int = int64()
    last_offset: int = int64()  # the last offset, inclusive
    delivery_state: int = int8()  # 0: available, 2: acknowledged, 4: archived
    delivery_count: int = int16()  # the number of deliveries


class PartitionResult(Struct):
    """The state of the group in one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    state_epoch: int = int32()  # raised with each initialization of the partition
    start_offset: int = int64()  # the first offset whose record is not settled; -1 if not yet known
    state_batches: list[StateBatch] = array(StateBatch)


class ReadStateResult(Struct):
    """The state of the group in one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionResult] = array(PartitionResult)


class ReadShareGroupStateResponse(Response, api_key=84, versions="0", flexible="0+"):
    """The state of the group."""

    results: list[ReadStateResult] = array(ReadStateResult)
