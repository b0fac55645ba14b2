"""Fetch (key 1): long-poll record batches from partition leaders."""

from __future__ import annotations

from kafkacompat.wire.compiler import Part
from kafkacompat.wire.primitives import MAX_INT32, MAX_INT64
from kafkacompat.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    batches,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uuid,
)


class ReplicaState(Struct):
    """Which replica fetches; -1 for consumers."""

    replica_id: int = int32(default=-1)
    replica_epoch: int = int64(default=-1)  # -1 if unknown


class FetchPartition(Struct):
    """Where to start in one partition, and how much to take."""

    partition: int = int32()
    current_leader_epoch: int = int32(versions="9+", default=-1)  # -1: the receiver does not check it
    fetch_offset: int = int64()  # of the first record wanted
    last_fetched_epoch: int = int32(versions="12+", default=-1)  # -1 if there is none
    log_start_offset: int = int64(versions="5+", default=-1)  # -1 unless a follower asks
    partition_max_bytes: int = int32()  # as max_bytes, of this partition alone
    replica_directory_id: bytes = uuid(versions="17+", tag=0)  # where the follower keeps it (KIP-853)
    # the default means that the replica does not tell
    high_watermark: int = int64(versions="18+", default=MAX_INT64, tag=1)


class FetchTopic(Struct):
    """The partitions of one topic to read."""

    topic: str = string(versions="0-12")
    topic_id: bytes = uuid(versions="13+")
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Struct):
    """Partitions to drop from the fetch session (KIP-227)."""

    topic: str = string(versions="7-12")
    topic_id: bytes = uuid(versions="13+")
    partitions: list[int] = array(int32())


class FetchRequest(Request, api_key=1, versions="0-18", flexible="12+"):
    """Send what is there from these offsets on, waiting a while if it is too little."""

    # null: do not check (Raft only)
    cluster_id: str | None = string(versions="12+", nullable="0+", default=None, tag=0)
    replica_id: int = int32(versions="0-14", default=-1)  # -1 for consumers
    replica_state: ReplicaState = struct(ReplicaState, versions="15+", tag=1)
    max_wait_ms: int = int32()  # how long to wait for min_bytes
    min_bytes: int = int32()  # answer as soon as there is as much
    max_bytes: int = int32(versions="3+", default=MAX_INT32)  # yet the first batch found is sent whole, however large
    isolation_level: int = int8(versions="4+")  # 0: read_uncommitted, 1: read_committed
    session_id: int = int32(versions="7+")  # 0: none yet
    session_epoch: int = int32(versions="7+", default=-1)  # 0: start a session, -1: no session, or end the one named
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, versions="7+")
    # of the consumer, who may be sent to a replica near it (KIP-392); empty: none
    rack_id: str = string(versions="11+")


class EpochEndOffset(Struct):
    """The end of the last epoch that the log shares with the fetcher, when they diverge."""

    epoch: int = int32(default=-1)  # -1: they do not diverge
    end_offset: int = int64(default=-1)  # -1: they do not diverge


class LeaderIdAndEpoch(Struct):
    """Who leads the partition now; -1 where that is not known."""

    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


class SnapshotId(Struct):
    """The snapshot to fetch instead of the log (Raft only)."""

    end_offset: int = int64(default=-1)  # -1: fetch the log
    epoch: int = int32(default=-1)  # -1: fetch the log


class AbortedTransaction(Struct):
    """A transaction whose records a read_committed consumer has to skip."""

    producer_id: int = int64()
    first_offset: int = int64()  # of the transaction's first record here


class PartitionData(Struct):
    """What was found in one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()  # the end of what all in-sync replicas have; -1 with an error
    last_stable_offset: int = int64(versions="4+", default=-1)  # -1 if unknown
    log_start_offset: int = int64(versions="5+", default=-1)  # -1 if unknown
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, versions="12+", tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, versions="12+", tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, versions="12+", tag=2)
    # null for read_uncommitted
    aborted_transactions: list[AbortedTransaction] | None = array(AbortedTransaction, versions="4+", nullable="0+")
    preferred_read_replica: int = int32(versions="11+", default=-1)  # -1: stay with this broker
    records: Part | None = batches(nullable="0+")  # null if there is none


class FetchableTopicResponse(Struct):
    """What was found in one topic."""

    topic: str = string(versions="0-12")
    topic_id: bytes = uuid(versions="13+")
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class FetchResponse(Response, api_key=1, versions="0-18", flexible="12+"):
    """The batches found, topic by topic."""

    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16(versions="7+")
    session_id: int = int32(versions="7+")  # 0: no session
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    # of the leaders named in current_leader (KIP-951)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="16+", tag=0)
