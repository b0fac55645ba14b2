"""LeaderAndIsr (key 4): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, int64, string, uuid


class LeaderAndIsrPartitionState(Struct):
    """DOC"""

    topic_name: str = string(versions="0-1")
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32())
    partition_epoch: int = int32()
    replicas: list[int] = array(int32())
    adding_replicas: list[int] = array(int32(), versions="3+")
    removing_replicas: list[int] = array(int32(), versions="3+")
    is_new: bool = boolean(versions="1+")
    leader_recovery_state: int = int8(versions="6+")


class LeaderAndIsrTopicState(Struct):
    """DOC"""

    topic_name: str = string()
    topic_id: bytes = uuid(versions="5+")
    partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState)


class LeaderAndIsrLiveLeader(Struct):
    """DOC"""

    broker_id: int = int32()
    host_name: str = string()
    port: int = int32()


class LeaderAndIsrRequest(Request, api_key=4, versions="0-7", flexible="4+"):
    """DOC"""

    controller_id: int = int32()
    is_k_raft_controller: bool = boolean(versions="7+")
    controller_epoch: int = int32()
    broker_epoch: int = int64(versions="2+", default=-1)
    type: int = int8(versions="5+")
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState, versions="0-1")
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState, versions="2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader)


class LeaderAndIsrPartitionError(Struct):
    """DOC"""

    topic_name: str = string(versions="0-4")
    partition_index: int = int32()
    error_code: int = int16()


class LeaderAndIsrTopicError(Struct):
    """DOC"""

    topic_id: bytes = uuid()
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError)


class LeaderAndIsrResponse(Response, api_key=4, versions="0-7", flexible="4+"):
    """DOC"""

    error_code: int = int16()
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, versions="0-4")
    topics: list[LeaderAndIsrTopicError] = array(LeaderAndIsrTopicError, versions="5+")
