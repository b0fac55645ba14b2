"""BeginQuorumEpoch (key 53): the new leader of the metadata log makes itself known (Raft)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, uint16, uuid


class PartitionData(Struct):
    """Who leads one partition from now on."""

    partition_index: int = int32()
    voter_directory_id: bytes = uuid(versions="1+")  # of the metadata log of the one told (KIP-853)
    leader_id: int = int32()
    leader_epoch: int = int32()


class TopicData(Struct):
    """The partitions of one topic."""

    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


class LeaderEndpoint(Struct):
    """Where the leader can be reached, by listener."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class BeginQuorumEpochRequest(Request, api_key=53, versions="0-1", flexible="1+"):
    """I am the leader."""

    cluster_id: str | None = string(nullable="0+", default=None)  # null: do not check
    voter_id: int = int32(versions="1+", default=-1)  # who is told; -1: do not check
    topics: list[TopicData] = array(TopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, versions="1+")


class PartitionResult(Struct):
    """Whom the one told follows in one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()  # -1: nobody
    leader_epoch: int = int32()


class TopicResult(Struct):
    """The partitions of one topic."""

    topic_name: str = string()
    partitions: list[PartitionResult] = array(PartitionResult)


class NodeEndpoint(Struct):
    """Where a leader named above can be reached."""

    node_id: int = int32()
    host: str = string()
    port: int = uint16()


class BeginQuorumEpochResponse(Response, api_key=53, versions="0-1", flexible="1+"):
    """Whether the leader is accepted."""

    error_code: int = int16()
    topics: list[TopicResult] = array(TopicResult)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0)
