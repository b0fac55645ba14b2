"""Vote (key 52): a controller requests the votes of the others to lead the metadata log (Raft)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, CLUSTER, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string, uint16, uuid


class PartitionData(Struct):
    """The candidacy for one partition."""

    partition_index: int = int32()
    replica_epoch: int = int32()  # the epoch that the candidate wants to lead; with pre_vote its current epoch
    replica_id: int = int32(entity=BROKER)  # the node id of the candidate
    replica_directory_id: bytes = uuid(versions="1+")  # the directory id of the candidate's metadata log (KIP-853)
    voter_directory_id: bytes = uuid(versions="1+")  # the directory id of the receiver's metadata log
    last_offset_epoch: int = int32()  # the epoch of the candidate's last record
    last_offset: int = int64()  # the offset after the candidate's last record
    # only checks if the candidate would win, so that no voter raises its epoch (KIP-996)
    pre_vote: bool = boolean(versions="2+")


class TopicData(Struct):
    """The candidacies in one topic."""

    topic_name: str = string(entity=TOPIC)
    partitions: list[PartitionData] = array(PartitionData)


class VoteRequest(Request, api_key=52, versions="0-2", flexible="0+"):
    """Request votes for the sender."""

    cluster_id: str | None = string(nullable="0+", default=None, entity=CLUSTER)  # null: the receiver does not check it
    voter_id: int = int32(
        versions="1+", default=-1, entity=BROKER
    )  # the node id of the receiver; -1: the receiver does not check it
    topics: list[TopicData] = array(TopicData)


class PartitionResult(Struct):
    """The vote for one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32(entity=BROKER)  # the leader that the receiver knows; -1 if there is none
    leader_epoch: int = int32()
    vote_granted: bool = boolean()  # true if the receiver votes for the candidate


class TopicResult(Struct):
    """The votes in one topic."""

    topic_name: str = string(entity=TOPIC)
    partitions: list[PartitionResult] = array(PartitionResult)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32(entity=BROKER)
    host: str = string()
    port: int = uint16()


class VoteResponse(Response, api_key=52, versions="0-2", flexible="0+"):
    """The vote for each partition."""

    error_code: int = int16()
    topics: list[TopicResult] = array(TopicResult)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0)
