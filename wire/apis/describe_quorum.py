"""DescribeQuorum (key 55): the voters and observers of the metadata log, with their progress."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TEXT, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string, uint16, uuid


class PartitionData(Struct):
    """One partition to describe."""

    partition_index: int = int32()


class TopicData(Struct):
    """The partitions of one topic; only __cluster_metadata has a quorum."""

    topic_name: str = string(entity=TOPIC)
    partitions: list[PartitionData] = array(PartitionData)


class DescribeQuorumRequest(Request, api_key=55, versions="0-2", flexible="0+"):
    """Describe the quorum of the given partitions."""

    topics: list[TopicData] = array(TopicData)


class ReplicaState(Struct):
    """The progress of one replica of the log."""

    replica_id: int = int32(entity=BROKER)
    replica_directory_id: bytes = uuid(versions="2+")  # the directory id of its log (KIP-853); 0 if unknown
    log_end_offset: int = int64()  # the offset after its last record; -1 if unknown
    # the time of its last fetch, in ms since 1970; -1 if unknown
    last_fetch_timestamp: int = int64(versions="1+", default=-1)
    # the last time that the replica had all records of the leader, in ms since 1970; -1 if unknown
    last_caught_up_timestamp: int = int64(versions="1+", default=-1)


class PartitionDataResponse(Struct):
    """The quorum of one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="0+", entity=TEXT)
    leader_id: int = int32(entity=BROKER)  # -1 if there is no leader
    leader_epoch: int = int32()
    high_watermark: int = int64()  # the offset after the last record that a majority stores
    current_voters: list[ReplicaState] = array(ReplicaState)  # the replicas that vote and count for a majority
    observers: list[ReplicaState] = array(ReplicaState)  # the replicas that follow without a vote


class TopicDataResponse(Struct):
    """The quorums of one topic."""

    topic_name: str = string(entity=TOPIC)
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


class Listener(Struct):
    """An address of a controller."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class Node(Struct):
    """The addresses of one voter."""

    node_id: int = int32(entity=BROKER)
    listeners: list[Listener] = array(Listener)


class DescribeQuorumResponse(Response, api_key=55, versions="0-2", flexible="0+"):
    """The quorums and the addresses of the voters."""

    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="0+", entity=TEXT)
    topics: list[TopicDataResponse] = array(TopicDataResponse)
    nodes: list[Node] = array(Node, versions="2+")
