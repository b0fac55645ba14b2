"""DeleteShareGroupState (key 86): delete the share coordinator's state of a share group (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, uuid


class PartitionData(Struct):
    """One partition."""

    partition: int = int32()


class DeleteStateData(Struct):
    """The partitions of one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionData] = array(PartitionData)


class DeleteShareGroupStateRequest(Request, api_key=86, versions="0", flexible="0+"):
    """Delete the state of the given partitions. A group coordinator sends this request."""

    group_id: str = string(entity=GROUP)
    topics: list[DeleteStateData] = array(DeleteStateData)


class PartitionResult(Struct):
    """The outcome for one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)


class DeleteStateResult(Struct):
    """The outcomes for one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionResult] = array(PartitionResult)


class DeleteShareGroupStateResponse(Response, api_key=86, versions="0", flexible="0+"):
    """The outcome for each partition."""

    results: list[DeleteStateResult] = array(DeleteStateResult)
