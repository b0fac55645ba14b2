"""InitializeShareGroupState (key 83): create the share coordinator's state of a share group (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string, uuid


class PartitionData(Struct):
    """The start offset of a share group in one partition."""

    partition: int = int32()
    # raised with each initialization of the partition; the coordinator fences an older epoch
    state_epoch: int = int32()
    start_offset: int = int64()  # the offset of the first record to deliver; -1 if not yet known


class InitializeStateData(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionData] = array(PartitionData)


class InitializeShareGroupStateRequest(Request, api_key=83, versions="0", flexible="0+"):
    """Create the state of the given partitions. A group coordinator sends this request."""

    group_id: str = string(entity=GROUP)
    topics: list[InitializeStateData] = array(InitializeStateData)


class PartitionResult(Struct):
    """The outcome for one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)


class InitializeStateResult(Struct):
    """The outcomes for one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionResult] = array(PartitionResult)


class InitializeShareGroupStateResponse(Response, api_key=83, versions="0", flexible="0+"):
    """The outcome for each partition."""

    results: list[InitializeStateResult] = array(InitializeStateResult)
