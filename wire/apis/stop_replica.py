"""StopReplica (key 5): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string


class StopReplicaPartitionV0(Struct):
    """DOC"""

    topic_name: str = string()
    partition_index: int = int32()


class StopReplicaTopicV1(Struct):
    """DOC"""

    name: str = string()
    partition_indexes: list[int] = array(int32())


class StopReplicaPartitionState(Struct):
    """DOC"""

    partition_index: int = int32()
    leader_epoch: int = int32(default=-1)
    delete_partition: bool = boolean()


class StopReplicaTopicState(Struct):
    """DOC"""

    topic_name: str = string()
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState)


class StopReplicaRequest(Request, api_key=5, versions="0-4", flexible="2+"):
    """DOC"""

    controller_id: int = int32()
    is_k_raft_controller: bool = boolean(versions="4+")
    controller_epoch: int = int32()
    broker_epoch: int = int64(versions="1+", default=-1)
    delete_partitions: bool = boolean(versions="0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = array(StopReplicaPartitionV0, versions="0")
    topics: list[StopReplicaTopicV1] = array(StopReplicaTopicV1, versions="1-2")
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState, versions="3+")


class StopReplicaPartitionError(Struct):
    """DOC"""

    topic_name: str = string()
    partition_index: int = int32()
    error_code: int = int16()


class StopReplicaResponse(Response, api_key=5, versions="0-4", flexible="2+"):
    """DOC"""

    error_code: int = int16()
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError)
