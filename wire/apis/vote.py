"""Vote (key 52): a controller asks the others to elect it leader of the metadata log (Raft)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string, uint16, uuid


class PartitionData(Struct):
    """The candidacy for one partition."""

    partition_index: int = int32()
    replica_epoch: int = int32()  # the epoch it wants to lead in, or is in while it only sounds the others out
    replica_id: int = int32()  # who wants to be elected
    replica_directory_id: bytes = uuid(versions="1+")  # of its metadata log (KIP-853)
    voter_directory_id: bytes = uuid(versions="1+")  # of the metadata log of the one asked
    last_offset_epoch: int = int32()  # of the last record it has
    last_offset: int = int64()  # one past the last record it has
    # only asks whether it would be elected, so that nobody's epoch moves (KIP-996)
    pre_vote: bool = boolean(versions="2+")


class TopicData(Struct):
    """The candidacies in one topic."""

    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


class VoteRequest(Request, api_key=52, versions="0-2", flexible="0+"):
    """Vote for me."""

    cluster_id: str | None = string(nullable="0+", default=None)  # null: the receiver does not check it
    voter_id: int = int32(versions="1+", default=-1)  # who is asked; -1: do not check
    topics: list[TopicData] = array(TopicData)


class PartitionResult(Struct):
    """The vote for one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()  # whom the one asked takes for the leader; -1: nobody
    leader_epoch: int = int32()
    vote_granted: bool = boolean()  # to the candidate that asks


class TopicResult(Struct):
    """The votes in one topic."""

    topic_name: str = string()
    partitions: list[PartitionResult] = array(PartitionResult)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32()
    host: str = string()
    port: int = uint16()


class VoteResponse(Response, api_key=52, versions="0-2", flexible="0+"):
    """The votes."""

    error_code: int = int16()
    topics: list[TopicResult] = array(TopicResult)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0)
