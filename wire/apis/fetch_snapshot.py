"""FetchSnapshot (key 59): bytes of a snapshot of the metadata log, for a replica too far behind (KIP-630)."""

from __future__ import annotations

from kafkacompat.wire.compiler import Part
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
    """Which snapshot."""

    end_offset: int = int64()  # one past the last record it stands for
    epoch: int = int32()  # of that record


class PartitionSnapshot(Struct):
    """Where to go on in one snapshot."""

    partition: int = int32()
    current_leader_epoch: int = int32()  # -1: the receiver does not check it
    snapshot_id: SnapshotId = struct(SnapshotId)
    position: int = int64()  # the byte to start at
    replica_directory_id: bytes = uuid(versions="1+", tag=0)  # of the one that fetches (KIP-853)


class TopicSnapshot(Struct):
    """The snapshots of one topic."""

    name: str = string()
    partitions: list[PartitionSnapshot] = array(PartitionSnapshot)


class FetchSnapshotRequest(Request, api_key=59, versions="0-1", flexible="0+"):
    """Send these parts of snapshots."""

    cluster_id: str | None = string(nullable="0+", default=None, tag=0)  # null: the receiver does not check it
    replica_id: int = int32(default=-1)  # who fetches; -1: nobody of the quorum
    max_bytes: int = int32(default=MAX_INT32)  # of all snapshots together
    topics: list[TopicSnapshot] = array(TopicSnapshot)


class LeaderIdAndEpoch(Struct):
    """The current leader of the partition."""

    leader_id: int = int32()  # -1 if unknown
    leader_epoch: int = int32()


class PartitionSnapshotResponse(Struct):
    """A part of one snapshot."""

    index: int = int32()  # of the partition
    error_code: int = int16()
    snapshot_id: SnapshotId = struct(SnapshotId)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, tag=0)  # the default means: as the request says
    size: int = int64()  # of the whole snapshot, in bytes
    position: int = int64()  # of the first byte sent
    unaligned_records: Part | None = batches()  # may begin and end in the middle of a batch


class TopicSnapshotResponse(Struct):
    """The parts of one topic."""

    name: str = string()
    partitions: list[PartitionSnapshotResponse] = array(PartitionSnapshotResponse)


class NodeEndpoint(Struct):
    """The address of a leader named in the response."""

    node_id: int = int32()
    host: str = string()
    port: int = uint16()


class FetchSnapshotResponse(Response, api_key=59, versions="0-1", flexible="0+"):
    """The parts."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicSnapshotResponse] = array(TopicSnapshotResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0)
