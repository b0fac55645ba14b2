"""DescribeProducers (key 61): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class TopicRequest(Struct):
    """DOC"""

    name: str = string()
    partition_indexes: list[int] = array(int32())


class DescribeProducersRequest(Request, api_key=61, versions="0", flexible="0+"):
    """DOC"""

    topics: list[TopicRequest] = array(TopicRequest)


class ProducerState(Struct):
    """DOC"""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


class PartitionResponse(Struct):
    """DOC"""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    active_producers: list[ProducerState] = array(ProducerState)


class TopicResponse(Struct):
    """DOC"""

    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


class DescribeProducersResponse(Response, api_key=61, versions="0", flexible="0+"):
    """DOC"""

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)
