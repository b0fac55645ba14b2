"""AlterPartition (key 56): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, int64, string, uuid


class BrokerState(Struct):
    """DOC"""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class PartitionData(Struct):
    """DOC"""

    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32(), versions="0-2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, versions="3+")
    leader_recovery_state: int = int8(versions="1+")
    partition_epoch: int = int32()


class TopicData(Struct):
    """DOC"""

    topic_name: str = string(versions="0-1")
    topic_id: bytes = uuid(versions="2+")
    partitions: list[PartitionData] = array(PartitionData)


class AlterPartitionRequest(Request, api_key=56, versions="0-3", flexible="0+"):
    """DOC"""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array(TopicData)


class PartitionDataResponse(Struct):
    """DOC"""

    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32())
    leader_recovery_state: int = int8(versions="1+")
    partition_epoch: int = int32()


class TopicDataResponse(Struct):
    """DOC"""

    topic_name: str = string(versions="0-1")
    topic_id: bytes = uuid(versions="2+")
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


class AlterPartitionResponse(Response, api_key=56, versions="0-3", flexible="0+"):
    """DOC"""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicDataResponse] = array(TopicDataResponse)
