"""AssignReplicasToDirs (key 73): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, uuid


class PartitionData(Struct):
    """DOC"""

    partition_index: int = int32()


class TopicData(Struct):
    """DOC"""

    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class DirectoryData(Struct):
    """DOC"""

    id: bytes = uuid()
    topics: list[TopicData] = array(TopicData)


class AssignReplicasToDirsRequest(Request, api_key=73, versions="0", flexible="0+"):
    """DOC"""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[DirectoryData] = array(DirectoryData)


class PartitionDataResponse(Struct):
    """DOC"""

    partition_index: int = int32()
    error_code: int = int16()


class TopicDataResponse(Struct):
    """DOC"""

    topic_id: bytes = uuid()
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


class DirectoryDataResponse(Struct):
    """DOC"""

    id: bytes = uuid()
    topics: list[TopicDataResponse] = array(TopicDataResponse)


class AssignReplicasToDirsResponse(Response, api_key=73, versions="0", flexible="0+"):
    """DOC"""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[DirectoryDataResponse] = array(DirectoryDataResponse)
