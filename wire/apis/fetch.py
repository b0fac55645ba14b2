"""Fetch (key 1): read record batches from partition leaders, with long polling."""

from __future__ import annotations

from kafkacompat.wire.compiler import Part
from kafkacompat.wire.entities import BROKER, CLUSTER, TOPIC, TOPIC_ID
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
    """The replica that fetches. The ids of a consumer are -1."""

    replica_id: int = int32(default=-1, entity=BROKER)
    replica_epoch: int = int64(default=-1)  # -1 if unknown


class FetchPartition(Struct):
    """The fetch offset in one partition and the size limit."""

    partition: int = int32()
    current_leader_epoch: int = int32(versions="9+", default=-1)  # -1: the receiver does not check it
    fetch_offset: int = int64()  # the offset of the first record to return
    last_fetched_epoch: int = int32(versions="12+", default=-1)  # -1 if there is none
    log_start_offset: int = int64(versions="5+", default=-1)  # the start of the follower's log; -1 for consumers
    partition_max_bytes: int = int32()  # the limit for this partition, with the same exception as max_bytes
    replica_directory_id: bytes = uuid(versions="17+", tag=0)  # the log directory of the follower's replica (KIP-853)
    # the replica's high watermark; the default if the replica does not report it
    high_watermark: int = int64(versions="18+", default=MAX_INT64, tag=1)


class FetchTopic(Struct):
    """The partitions of one topic to fetch."""

    topic: str = string(versions="0-12", entity=TOPIC)
    topic_id: bytes = uuid(versions="13+", entity=TOPIC_ID)
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Struct):
    """Partitions to remove from the fetch session (KIP-227)."""

    topic: str = string(versions="7-12", entity=TOPIC)
    topic_id: bytes = uuid(versions="13+", entity=TOPIC_ID)
    partitions: list[int] = array(int32())


class FetchRequest(Request, api_key=1, versions="0-18", flexible="12+"):
    """Fetch records from the given offsets. The broker waits up to max_wait_ms for min_bytes."""

    # null: the receiver does not check it (Raft only)
    cluster_id: str | None = string(versions="12+", nullable="0+", default=None, tag=0, entity=CLUSTER)
    replica_id: int = int32(versions="0-14", default=-1, entity=BROKER)  # -1 for consumers
    replica_state: ReplicaState = struct(ReplicaState, versions="15+", tag=1)
    max_wait_ms: int = int32()  # the longest wait for min_bytes
    min_bytes: int = int32()  # the broker responds as soon as this many bytes are available
    # the size limit of the response; the first batch is returned whole, even if larger
    max_bytes: int = int32(versions="3+", default=MAX_INT32)
    isolation_level: int = int8(versions="4+")  # 0: read_uncommitted, 1: read_committed
    session_id: int = int32(versions="7+")  # 0 if there is none yet
    session_epoch: int = int32(versions="7+", default=-1)  # 0: start a session, -1: no session, or end the given one
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, versions="7+")
    # the consumer's rack, for which the leader may name a nearer replica (KIP-392); empty if there is none
    rack_id: str = string(versions="11+")


class EpochEndOffset(Struct):
    """The end of the largest epoch that the leader and the fetcher share, if their logs diverge."""

    epoch: int = int32(default=-1)  # -1 if the logs do not diverge
    end_offset: int = int64(default=-1)  # -1 if the logs do not diverge


class LeaderIdAndEpoch(Struct):
    """The current leader of the partition; -1 if unknown."""

    leader_id: int = int32(default=-1, entity=BROKER)
    leader_epoch: int = int32(default=-1)


class SnapshotId(Struct):
    """The snapshot to fetch instead of the log (Raft only)."""

    end_offset: int = int64(default=-1)  # -1: no snapshot, the replica fetches the log
    epoch: int = int32(default=-1)  # -1: no snapshot, the replica fetches the log


class AbortedTransaction(Struct):
    """An aborted transaction. A read_committed consumer skips its records."""

    producer_id: int = int64()
    first_offset: int = int64()  # the offset of the transaction's first record in the partition


class PartitionData(Struct):
    """The records and offsets of one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()  # the offset up to which all in-sync replicas have the log; -1 if the request fails
    last_stable_offset: int = int64(versions="4+", default=-1)  # -1 if unknown
    log_start_offset: int = int64(versions="5+", default=-1)  # -1 if unknown
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, versions="12+", tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, versions="12+", tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, versions="12+", tag=2)
    # null with read_uncommitted
    aborted_transactions: list[AbortedTransaction] | None = array(AbortedTransaction, versions="4+", nullable="0+")
    preferred_read_replica: int = int32(
        versions="11+", default=-1, entity=BROKER
    )  # the replica to fetch from; -1: this broker
    records: Part | None = batches(nullable="0+")  # null if there is none


class FetchableTopicResponse(Struct):
    """The records and offsets of one topic."""

    topic: str = string(versions="0-12", entity=TOPIC)
    topic_id: bytes = uuid(versions="13+", entity=TOPIC_ID)
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32(entity=BROKER)
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class FetchResponse(Response, api_key=1, versions="0-18", flexible="12+"):
    """The fetched batches, grouped by topic."""

    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16(versions="7+")
    session_id: int = int32(versions="7+")  # 0 without a session
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    # the addresses of the leaders in current_leader (KIP-951)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="16+", tag=0)
