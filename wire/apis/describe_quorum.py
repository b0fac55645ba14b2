"""DescribeQuorum (key 55): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string, uint16, uuid


class PartitionData(Struct):
    """DOC"""

    partition_index: int = int32()


class TopicData(Struct):
    """DOC"""

    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


class DescribeQuorumRequest(Request, api_key=55, versions="0-2", flexible="0+"):
    """DOC"""

    topics: list[TopicData] = array(TopicData)


class ReplicaState(Struct):
    """DOC"""

    replica_id: int = int32()
    replica_directory_id: bytes = uuid(versions="2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(versions="1+", default=-1)
    last_caught_up_timestamp: int = int64(versions="1+", default=-1)


class PartitionDataResponse(Struct):
    """DOC"""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="0+")
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


class TopicDataResponse(Struct):
    """DOC"""

    topic_name: str = string()
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


class Listener(Struct):
    """DOC"""

    name: str = string()
    host: str = string()
    port: int = uint16()


class Node(Struct):
    """DOC"""

    node_id: int = int32()
    listeners: list[Listener] = array(Listener)


class DescribeQuorumResponse(Response, api_key=55, versions="0-2", flexible="0+"):
    """DOC"""

    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="0+")
    topics: list[TopicDataResponse] = array(TopicDataResponse)
    nodes: list[Node] = array(Node, versions="2+")
