"""Vote (key 52): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string, uint16, uuid


class PartitionData(Struct):
    """DOC"""

    partition_index: int = int32()
    replica_epoch: int = int32()
    replica_id: int = int32()
    replica_directory_id: bytes = uuid(versions="1+")
    voter_directory_id: bytes = uuid(versions="1+")
    last_offset_epoch: int = int32()
    last_offset: int = int64()
    pre_vote: bool = boolean(versions="2+")


class TopicData(Struct):
    """DOC"""

    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


class VoteRequest(Request, api_key=52, versions="0-2", flexible="0+"):
    """DOC"""

    cluster_id: str | None = string(nullable="0+", default=None)
    voter_id: int = int32(versions="1+", default=-1)
    topics: list[TopicData] = array(TopicData)


class PartitionDataResponse(Struct):
    """DOC"""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    vote_granted: bool = boolean()


class TopicDataResponse(Struct):
    """DOC"""

    topic_name: str = string()
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


class NodeEndpoint(Struct):
    """DOC"""

    node_id: int = int32()
    host: str = string()
    port: int = uint16()


class VoteResponse(Response, api_key=52, versions="0-2", flexible="0+"):
    """DOC"""

    error_code: int = int16()
    topics: list[TopicDataResponse] = array(TopicDataResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0)
