"""FetchSnapshot (key 59): fetch part of a metadata log snapshot, for replicas that lag too far (KIP-630)."""

from __future__ import annotations

from kafkacompat.wire.compiler import Part
from kafkacompat.wire.entities import BROKER, CLUSTER, TOPIC
from kafkacompat.wire.primitives import MAX_INT32
from kafkacompat.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    batches,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
    uuid,
)


class SnapshotId(Struct):
    """The id of a snapshot."""

    end_offset: int = int64()  # the offset after the last record that the snapshot covers
    epoch: int = int32()  # the epoch of the last record that the snapshot covers


class PartitionSnapshot(Struct):
    """The position to read from in one snapshot."""

    partition: int = int32()
    current_leader_epoch: int = int32()  # -1: the receiver does not check it
    snapshot_id: SnapshotId = struct(SnapshotId)
    position: int = int64()  # the position of the first byte to return
    replica_directory_id: bytes = uuid(versions="1+", tag=0)  # the directory id of the fetching replica (KIP-853)


class TopicSnapshot(Struct):
    """The snapshots of one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[PartitionSnapshot] = array(PartitionSnapshot)


class FetchSnapshotRequest(Request, api_key=59, versions="0-1", flexible="0+"):
    """Fetch parts of the given snapshots."""

    cluster_id: str | None = string(
        nullable="0+", default=None, tag=0, entity=CLUSTER
    )  # null: the receiver does not check it
    replica_id: int = int32(default=-1, entity=BROKER)  # the replica that fetches; -1 if it is outside of the quorum
    max_bytes: int = int32(default=MAX_INT32)  # the size limit for all snapshots together
    topics: list[TopicSnapshot] = array(TopicSnapshot)


class LeaderIdAndEpoch(Struct):
    """The current leader of the partition."""

    leader_id: int = int32(entity=BROKER)  # -1 if unknown
    leader_epoch: int = int32()


class PartitionSnapshotResponse(Struct):
    """A part of one snapshot."""

    index: int = int32()  # the index of the partition
    error_code: int = int16()
    snapshot_id: SnapshotId = struct(SnapshotId)
    # the current leader; the default if the request names it correctly
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, tag=0)
    size: int = int64()  # the size of the whole snapshot in bytes
    position: int = int64()  # the position of the first returned byte
    unaligned_records: Part | None = batches()  # part of the snapshot; may begin and end within a batch


class TopicSnapshotResponse(Struct):
    """The parts of one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[PartitionSnapshotResponse] = array(PartitionSnapshotResponse)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32(entity=BROKER)
    host: str = string()
    port: int = uint16()


class FetchSnapshotResponse(Response, api_key=59, versions="0-1", flexible="0+"):
    """The fetched parts of snapshots."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicSnapshotResponse] = array(TopicSnapshotResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0)
