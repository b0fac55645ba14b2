"""AlterPartition (key 56): a leader tells the controller who is in sync (KIP-497)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, int64, string, uuid


class BrokerState(Struct):
    """A replica in sync, and which registration of its broker is meant."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class PartitionData(Struct):
    """The replicas in sync of one partition."""

    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32(), versions="0-2")  # the replicas in sync from now on
    # the same, checked against their brokers' registrations (KIP-903)
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, versions="3+")
    leader_recovery_state: int = int8(versions="1+")  # 0: clean, 1: recovering from an unclean election
    partition_epoch: int = int32()  # counts the changes of the partition; refused when the controller is further


class TopicData(Struct):
    """The partitions of one topic."""

    topic_name: str = string(versions="0-1")
    topic_id: bytes = uuid(versions="2+")
    partitions: list[PartitionData] = array(PartitionData)


class AlterPartitionRequest(Request, api_key=56, versions="0-3", flexible="0+"):
    """Change who is in sync."""

    broker_id: int = int32()  # the leader that asks
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array(TopicData)


class PartitionResult(Struct):
    """One partition as the controller has it now."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()  # -1: none
    leader_epoch: int = int32()
    isr: list[int] = array(int32())  # the replicas in sync
    leader_recovery_state: int = int8(versions="1+")  # as in the request
    partition_epoch: int = int32()  # to send with the next change


class TopicResult(Struct):
    """The partitions of one topic."""

    topic_name: str = string(versions="0-1")
    topic_id: bytes = uuid(versions="2+")
    partitions: list[PartitionResult] = array(PartitionResult)


class AlterPartitionResponse(Response, api_key=56, versions="0-3", flexible="0+"):
    """What became of each change."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicResult] = array(TopicResult)
