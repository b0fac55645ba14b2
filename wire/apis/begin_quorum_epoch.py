"""BeginQuorumEpoch (key 53): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, uint16, uuid


class PartitionData(Struct):
    """DOC"""

    partition_index: int = int32()
    voter_directory_id: bytes = uuid(versions="1+")
    leader_id: int = int32()
    leader_epoch: int = int32()


class TopicData(Struct):
    """DOC"""

    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


class LeaderEndpoint(Struct):
    """DOC"""

    name: str = string()
    host: str = string()
    port: int = uint16()


class BeginQuorumEpochRequest(Request, api_key=53, versions="0-1", flexible="1+"):
    """DOC"""

    cluster_id: str | None = string(nullable="0+", default=None)
    voter_id: int = int32(versions="1+", default=-1)
    topics: list[TopicData] = array(TopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, versions="1+")


class PartitionDataResponse(Struct):
    """DOC"""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


class TopicDataResponse(Struct):
    """DOC"""

    topic_name: str = string()
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


class NodeEndpoint(Struct):
    """DOC"""

    node_id: int = int32()
    host: str = string()
    port: int = uint16()


class BeginQuorumEpochResponse(Response, api_key=53, versions="0-1", flexible="1+"):
    """DOC"""

    error_code: int = int16()
    topics: list[TopicDataResponse] = array(TopicDataResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0)
