"""LeaderAndIsr (key 4): a ZooKeeper controller assigns leadership to a broker; removed in Kafka 4.0."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, int64, string, uuid


class LeaderAndIsrPartitionState(Struct):
    """The leader and the replicas of one partition."""

    topic_name: str = string(versions="0-1", entity=TOPIC)
    partition_index: int = int32()
    controller_epoch: int = int32()  # the epoch of the controller that changed the partition last
    leader: int = int32(entity=BROKER)  # -1: none, -2: the topic is being deleted
    leader_epoch: int = int32()
    isr: list[int] = array(int32(entity=BROKER))  # the brokers in the in-sync replica set
    partition_epoch: int = int32()  # raised with each change of this state
    replicas: list[int] = array(int32(entity=BROKER))  # brokers in the order of preference
    # brokers that a reassignment adds; empty if there are none
    adding_replicas: list[int] = array(int32(entity=BROKER), versions="3+")
    # brokers that a reassignment removes; empty if there are none
    removing_replicas: list[int] = array(int32(entity=BROKER), versions="3+")
    is_new: bool = boolean(versions="1+")  # true: the broker creates the replica, false: a missing replica is an error
    leader_recovery_state: int = int8(versions="6+")  # 0: recovered, 1: recovering from an unclean election (KIP-704)


class LeaderAndIsrTopicState(Struct):
    """The partitions of one topic."""

    topic_name: str = string(entity=TOPIC)
    topic_id: bytes = uuid(versions="5+", entity=TOPIC_ID)
    partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState)


class LeaderAndIsrLiveLeader(Struct):
    """The address of a leader named in the response."""

    broker_id: int = int32(entity=BROKER)
    host_name: str = string()
    port: int = int32()


class LeaderAndIsrRequest(Request, api_key=4, versions="0-7", flexible="4+", sized_by_cluster=True):
    """Lead or follow the given partitions."""

    controller_id: int = int32(entity=BROKER)
    # controller_id is that of a KRaft controller during a migration (KIP-866)
    is_k_raft_controller: bool = boolean(versions="7+")
    controller_epoch: int = int32()  # raised with each new controller; the broker rejects a request with an older epoch
    broker_epoch: int = int64(versions="2+", default=-1)
    # 0: unknown, 1: the changed partitions, 2: all partitions of the broker, so that others are strays
    type: int = int8(versions="5+")
    # each entry names its topic
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState, versions="0-1")
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState, versions="2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader)


class LeaderAndIsrPartitionError(Struct):
    """The outcome for one partition."""

    topic_name: str = string(versions="0-4", entity=TOPIC)
    partition_index: int = int32()
    error_code: int = int16()


class LeaderAndIsrTopicError(Struct):
    """The outcomes for one topic, from version 5."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError)


class LeaderAndIsrResponse(Response, api_key=4, versions="0-7", flexible="4+"):
    """The outcome for each partition."""

    error_code: int = int16()
    # each entry names its topic
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, versions="0-4")
    topics: list[LeaderAndIsrTopicError] = array(LeaderAndIsrTopicError, versions="5+")
