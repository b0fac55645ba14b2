"""DescribeProducers (key 61), v0: the idempotent and transactional producers that partitions remember (KIP-664).

A partition named several times is answered once.
"""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.metadata.topic_names import check_topic_name
from kafkacompat.storage.producers.producer import Producer
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kafkacompat.wire.errors import KafkaError


def handle_describe_producers(
    request: DescribeProducersRequest, context: RequestContext, services: Services
) -> Pending[DescribeProducersResponse]:
    """Describe the producers of each partition, of which there may be a million."""
    return answer_in_order(_describe_topics(request, services))


async def _describe_topics(request: DescribeProducersRequest, services: Services) -> DescribeProducersResponse:
    wanted: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    topics = [
        TopicResponse(name=name, partitions=[await _describe_partition(name, index, services) for index in indexes])
        for name, indexes in wanted.items()
    ]
    return DescribeProducersResponse(topics=topics)


async def _describe_partition(topic: str, index: int, services: Services) -> PartitionResponse:
    try:
        check_topic_name(topic)
        partition = services.replica_manager.find(topic, index)
        partition.check_leads(-1)
        producers = partition.log.producer_state.producers
    except KafkaError as problem:
        return PartitionResponse(partition_index=index, error_code=error_code_of(problem), error_message=problem.detail)
    packed = list(producers.packed.values())
    described = [
        _describe_producer(Producer.unpack(producer)) async for producer in yield_in_turns(services.clock, packed)
    ]
    return PartitionResponse(partition_index=index, active_producers=described)


def _describe_producer(producer: Producer) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.batches[-1].last_sequence if producer.batches else -1,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_txn_first_offset,
    )
