"""FetchSnapshot (key 59): DOC"""

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
    """DOC"""

    end_offset: int = int64()
    epoch: int = int32()


class PartitionSnapshot(Struct):
    """DOC"""

    partition: int = int32()
    current_leader_epoch: int = int32()
    snapshot_id: SnapshotId = struct(SnapshotId)
    position: int = int64()
    replica_directory_id: bytes = uuid(versions="1+", tag=0)


class TopicSnapshot(Struct):
    """DOC"""

    name: str = string()
    partitions: list[PartitionSnapshot] = array(PartitionSnapshot)


class FetchSnapshotRequest(Request, api_key=59, versions="0-1", flexible="0+"):
    """DOC"""

    cluster_id: str | None = string(nullable="0+", default=None, tag=0)
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=MAX_INT32)
    topics: list[TopicSnapshot] = array(TopicSnapshot)


class SnapshotIdResponse(Struct):
    """DOC"""

    end_offset: int = int64()
    epoch: int = int32()


class LeaderIdAndEpoch(Struct):
    """DOC"""

    leader_id: int = int32()
    leader_epoch: int = int32()


class PartitionSnapshotResponse(Struct):
    """DOC"""

    index: int = int32()
    error_code: int = int16()
    snapshot_id: SnapshotIdResponse = struct(SnapshotIdResponse)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, tag=0)
    size: int = int64()
    position: int = int64()
    unaligned_records: Part | None = batches()


class TopicSnapshotResponse(Struct):
    """DOC"""

    name: str = string()
    partitions: list[PartitionSnapshotResponse] = array(PartitionSnapshotResponse)


class NodeEndpoint(Struct):
    """DOC"""

    node_id: int = int32()
    host: str = string()
    port: int = uint16()


class FetchSnapshotResponse(Response, api_key=59, versions="0-1", flexible="0+"):
    """DOC"""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicSnapshotResponse] = array(TopicSnapshotResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0)
