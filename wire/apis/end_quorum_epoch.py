"""EndQuorumEpoch (key 54): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, uint16, uuid


class ReplicaInfo(Struct):
    """DOC"""

    candidate_id: int = int32()
    candidate_directory_id: bytes = uuid()


class PartitionData(Struct):
    """DOC"""

    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32()
    preferred_successors: list[int] = array(int32(), versions="0")
    preferred_candidates: list[ReplicaInfo] = array(ReplicaInfo, versions="1+")


class TopicData(Struct):
    """DOC"""

    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


class LeaderEndpoint(Struct):
    """DOC"""

    name: str = string()
    host: str = string()
    port: int = uint16()


class EndQuorumEpochRequest(Request, api_key=54, versions="0-1", flexible="1+"):
    """DOC"""

    cluster_id: str | None = string(nullable="0+", default=None)
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


class EndQuorumEpochResponse(Response, api_key=54, versions="0-1", flexible="1+"):
    """DOC"""

    error_code: int = int16()
    topics: list[TopicDataResponse] = array(TopicDataResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0)
