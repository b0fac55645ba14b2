"""StopReplica (key 5): a ZooKeeper controller removes replicas from a broker; removed in Kafka 4.0."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string


class StopReplicaPartitionV0(Struct):
    """One partition, in version 0."""

    topic_name: str = string(entity=TOPIC)
    partition_index: int = int32()


class StopReplicaTopicV1(Struct):
    """The partitions of one topic, in versions 1 and 2."""

    name: str = string(entity=TOPIC)
    partition_indexes: list[int] = array(int32())


class StopReplicaPartitionState(Struct):
    """One partition to stop or delete, from version 3."""

    partition_index: int = int32()
    # -1: the receiver does not check it, -2: the topic is being deleted (KIP-570)
    leader_epoch: int = int32(default=-1)
    delete_partition: bool = boolean()  # also deletes the log


class StopReplicaTopicState(Struct):
    """The partitions of one topic, from version 3."""

    topic_name: str = string(entity=TOPIC)
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState)


class StopReplicaRequest(Request, api_key=5, versions="0-4", flexible="2+", sized_by_cluster=True):
    """Stop leading and following the given partitions."""

    controller_id: int = int32(entity=BROKER)
    # controller_id is that of a KRaft controller during a migration (KIP-866)
    is_k_raft_controller: bool = boolean(versions="4+")
    controller_epoch: int = int32()  # raised with each new controller; the broker rejects a request with an older epoch
    broker_epoch: int = int64(versions="1+", default=-1)
    delete_partitions: bool = boolean(versions="0-2")  # also deletes the logs of all given partitions
    ungrouped_partitions: list[StopReplicaPartitionV0] = array(StopReplicaPartitionV0, versions="0")
    topics: list[StopReplicaTopicV1] = array(StopReplicaTopicV1, versions="1-2")
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState, versions="3+")


class StopReplicaPartitionError(Struct):
    """The outcome for one partition."""

    topic_name: str = string(entity=TOPIC)
    partition_index: int = int32()
    error_code: int = int16()


class StopReplicaResponse(Response, api_key=5, versions="0-4", flexible="2+"):
    """The outcome for each replica."""

    error_code: int = int16()
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError)
