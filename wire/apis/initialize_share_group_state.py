"""InitializeShareGroupState (key 83): a group coordinator has a share coordinator begin with partitions (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string, uuid


class PartitionData(Struct):
    """Where a share group starts in one partition."""

    partition: int = int32()
    state_epoch: int = int32()  # counts how often the partition was begun with; an older one is fenced
    start_offset: int = int64()  # the first record to hand out; -1: not known yet


class InitializeStateData(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class InitializeShareGroupStateRequest(Request, api_key=83, versions="0", flexible="0+"):
    """Keep the state of these."""

    group_id: str = string()
    topics: list[InitializeStateData] = array(InitializeStateData)


class PartitionResult(Struct):
    """The outcome for one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class InitializeStateResult(Struct):
    """The outcomes for one topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class InitializeShareGroupStateResponse(Response, api_key=83, versions="0", flexible="0+"):
    """The outcome for each partition."""

    results: list[InitializeStateResult] = array(InitializeStateResult)
