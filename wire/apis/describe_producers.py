"""DescribeProducers (key 61): the idempotent and transactional producers of partitions (KIP-664)."""

from __future__ import annotations

from kafkacompat.wire.entities import TEXT, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class TopicRequest(Struct):
    """The partitions of one topic to describe."""

    name: str = string(entity=TOPIC)
    partition_indexes: list[int] = array(int32())


class DescribeProducersRequest(Request, api_key=61, versions="0", flexible="0+"):
    """List the producers of the given partitions."""

    topics: list[TopicRequest] = array(TopicRequest)


class ProducerState(Struct):
    """The state that a partition stores for one producer."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)  # the sequence of its last record; -1 if there is none
    last_timestamp: int = int64(default=-1)  # the time of its last batch, in ms since 1970; -1 if there is none
    # the epoch of the coordinator that ended its last transaction; -1 if none has ended
    coordinator_epoch: int = int32()
    # the offset of the first record of its open transaction; -1 if none is open
    current_txn_start_offset: int = int64(default=-1)


class PartitionResponse(Struct):
    """The producers of one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    active_producers: list[ProducerState] = array(ProducerState)


class TopicResponse(Struct):
    """The producers of one topic, by partition."""

    name: str = string(entity=TOPIC)
    partitions: list[PartitionResponse] = array(PartitionResponse)


class DescribeProducersResponse(Response, api_key=61, versions="0", flexible="0+"):
    """The producers of each partition."""

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)
