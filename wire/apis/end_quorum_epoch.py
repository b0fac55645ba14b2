"""EndQuorumEpoch (key 54): the leader of the metadata log resigns (Raft)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, CLUSTER, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, uint16, uuid


class ReplicaInfo(Struct):
    """A voter that may become the next leader."""

    candidate_id: int = int32(entity=BROKER)
    candidate_directory_id: bytes = uuid()  # the directory id of its metadata log


class PartitionData(Struct):
    """The resignation for one partition."""

    partition_index: int = int32()
    leader_id: int = int32(entity=BROKER)  # the leader that resigns
    leader_epoch: int = int32()
    preferred_successors: list[int] = array(
        int32(entity=BROKER), versions="0"
    )  # voters in order of log end, the furthest first
    # voters in order of log end, the furthest first
    preferred_candidates: list[ReplicaInfo] = array(ReplicaInfo, versions="1+")


class TopicData(Struct):
    """The resignations in one topic."""

    topic_name: str = string(entity=TOPIC)
    partitions: list[PartitionData] = array(PartitionData)


class LeaderEndpoint(Struct):
    """The address of the resigning leader on one listener."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class EndQuorumEpochRequest(Request, api_key=54, versions="0-1", flexible="1+"):
    """Announce that the leader resigns, so that the voters elect another."""

    cluster_id: str | None = string(nullable="0+", default=None, entity=CLUSTER)  # null: the receiver does not check it
    topics: list[TopicData] = array(TopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, versions="1+")


class PartitionResult(Struct):
    """The leader that the receiver follows in one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32(entity=BROKER)  # -1 if there is no leader
    leader_epoch: int = int32()


class TopicResult(Struct):
    """The partitions of one topic."""

    topic_name: str = string(entity=TOPIC)
    partitions: list[PartitionResult] = array(PartitionResult)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32(entity=BROKER)
    host: str = string()
    port: int = uint16()


class EndQuorumEpochResponse(Response, api_key=54, versions="0-1", flexible="1+"):
    """The outcome for each partition."""

    error_code: int = int16()
    topics: list[TopicResult] = array(TopicResult)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0)
