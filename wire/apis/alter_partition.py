"""AlterPartition (key 56): a leader reports a changed in-sync replica set to the controller (KIP-497)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, int64, string, uuid


class BrokerState(Struct):
    """An in-sync replica and the registration epoch of its broker."""

    broker_id: int = int32(entity=BROKER)
    broker_epoch: int = int64(default=-1)


class PartitionData(Struct):
    """The in-sync replica set of one partition."""

    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32(entity=BROKER), versions="0-2")  # the new in-sync replica set
    # the new in-sync replica set with broker epochs, which the controller checks (KIP-903)
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, versions="3+")
    leader_recovery_state: int = int8(versions="1+")  # 0: recovered, 1: recovering from an unclean election
    partition_epoch: int = int32()  # the partition's change count; the controller rejects an older one


class TopicData(Struct):
    """The partitions of one topic."""

    topic_name: str = string(versions="0-1", entity=TOPIC)
    topic_id: bytes = uuid(versions="2+", entity=TOPIC_ID)
    partitions: list[PartitionData] = array(PartitionData)


class AlterPartitionRequest(Request, api_key=56, versions="0-3", flexible="0+"):
    """Change the in-sync replica sets of partitions."""

    broker_id: int = int32(entity=BROKER)  # the leader that sends the request
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array(TopicData)


class PartitionResult(Struct):
    """The state of one partition as the controller stores it."""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32(entity=BROKER)  # -1 if there is none
    leader_epoch: int = int32()
    isr: list[int] = array(int32(entity=BROKER))  # the in-sync replica set
    leader_recovery_state: int = int8(versions="1+")  # the value from the request
    partition_epoch: int = int32()  # the epoch to send with the next change


class TopicResult(Struct):
    """The partitions of one topic."""

    topic_name: str = string(versions="0-1", entity=TOPIC)
    topic_id: bytes = uuid(versions="2+", entity=TOPIC_ID)
    partitions: list[PartitionResult] = array(PartitionResult)


class AlterPartitionResponse(Response, api_key=56, versions="0-3", flexible="0+"):
    """The outcome of each change."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicResult] = array(TopicResult)
