"""BeginQuorumEpoch (key 53): a new leader of the metadata log announces itself to the voters (Raft)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, CLUSTER, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, uint16, uuid


class PartitionData(Struct):
    """The new leader of one partition."""

    partition_index: int = int32()
    voter_directory_id: bytes = uuid(versions="1+")  # the directory id of the receiver's metadata log (KIP-853)
    leader_id: int = int32(entity=BROKER)
    leader_epoch: int = int32()


class TopicData(Struct):
    """The partitions of one topic."""

    topic_name: str = string(entity=TOPIC)
    partitions: list[PartitionData] = array(PartitionData)


class LeaderEndpoint(Struct):
    """The address of the leader on one listener."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class BeginQuorumEpochRequest(Request, api_key=53, versions="0-1", flexible="1+"):
    """Announce the sender as the leader of the given partitions."""

    cluster_id: str | None = string(nullable="0+", default=None, entity=CLUSTER)  # null: the receiver does not check it
    voter_id: int = int32(
        versions="1+", default=-1, entity=BROKER
    )  # the node id of the receiver; -1: the receiver does not check it
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


class BeginQuorumEpochResponse(Response, api_key=53, versions="0-1", flexible="1+"):
    """The outcome for each partition."""

    error_code: int = int16()
    topics: list[TopicResult] = array(TopicResult)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0)
