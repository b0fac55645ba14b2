"""LeaderAndIsr (key 4): a ZooKeeper controller tells a broker what it leads and follows; gone in Kafka 4.0."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, int64, string, uuid


class LeaderAndIsrPartitionState(Struct):
    """Who leads one partition, and who replicates it."""

    topic_name: str = string(versions="0-1")
    partition_index: int = int32()
    controller_epoch: int = int32()  # of the controller that changed the partition last
    leader: int = int32()  # -1: none, -2: the topic is being deleted
    leader_epoch: int = int32()
    isr: list[int] = array(int32())  # brokers in sync
    partition_epoch: int = int32()  # counts the changes of this state
    replicas: list[int] = array(int32())  # brokers in the order of preference
    adding_replicas: list[int] = array(int32(), versions="3+")  # those a reassignment adds; empty: none
    removing_replicas: list[int] = array(int32(), versions="3+")  # those a reassignment takes away; empty: none
    is_new: bool = boolean(versions="1+")  # the broker is to create the replica; else a missing one is an error
    leader_recovery_state: int = int8(versions="6+")  # 0: recovered, 1: recovering from an unclean election (KIP-704)


class LeaderAndIsrTopicState(Struct):
    """The partitions of one topic."""

    topic_name: str = string()
    topic_id: bytes = uuid(versions="5+")
    partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState)


class LeaderAndIsrLiveLeader(Struct):
    """The address of a leader named in the response."""

    broker_id: int = int32()
    host_name: str = string()
    port: int = int32()


class LeaderAndIsrRequest(Request, api_key=4, versions="0-7", flexible="4+"):
    """Lead and follow these partitions from now on."""

    controller_id: int = int32()
    # controller_id is a KRaft controller, during a migration (KIP-866)
    is_k_raft_controller: bool = boolean(versions="7+")
    controller_epoch: int = int32()  # counts the controllers; a request with an older one is refused
    broker_epoch: int = int64(versions="2+", default=-1)
    # 0: not told, 1: the partitions that changed, 2: all of the broker, others are strays
    type: int = int8(versions="5+")
    # each names its topic
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState, versions="0-1")
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState, versions="2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader)


class LeaderAndIsrPartitionError(Struct):
    """The outcome for one partition."""

    topic_name: str = string(versions="0-4")
    partition_index: int = int32()
    error_code: int = int16()


class LeaderAndIsrTopicError(Struct):
    """The outcomes for one topic, from version 5."""

    topic_id: bytes = uuid()
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError)


class LeaderAndIsrResponse(Response, api_key=4, versions="0-7", flexible="4+"):
    """Which partitions the broker could not take on."""

    error_code: int = int16()
    # each names its topic
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, versions="0-4")
    topics: list[LeaderAndIsrTopicError] = array(LeaderAndIsrTopicError, versions="5+")
