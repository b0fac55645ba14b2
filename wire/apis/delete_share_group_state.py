"""DeleteShareGroupState (key 86): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, uuid


class PartitionData(Struct):
    """DOC"""

    partition: int = int32()


class DeleteStateData(Struct):
    """DOC"""

    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class DeleteShareGroupStateRequest(Request, api_key=86, versions="0", flexible="0+"):
    """DOC"""

    group_id: str = string()
    topics: list[DeleteStateData] = array(DeleteStateData)


class PartitionResult(Struct):
    """DOC"""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class DeleteStateResult(Struct):
    """DOC"""

    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class DeleteShareGroupStateResponse(Response, api_key=86, versions="0", flexible="0+"):
    """DOC"""

    results: list[DeleteStateResult] = array(DeleteStateResult)
