"""DescribeProducers (key 61), v0: the idempotent and transactional producers that partitions remember (KIP-664).

A partition named several times is answered once.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.per_partition import error_code_of
from kafkacompat.metadata.topic_names import check_topic_name
from kafkacompat.storage.producer_state import Producer
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
) -> DescribeProducersResponse:
    """Describe the producers of each partition."""
    wanted: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    topics = [
        TopicResponse(name=name, partitions=[_partition(name, index, services) for index in indexes])
        for name, indexes in wanted.items()
    ]
    return DescribeProducersResponse(topics=topics)


def _partition(topic: str, index: int, services: Services) -> PartitionResponse:
    try:
        check_topic_name(topic)
        producers = services.replica_manager.find(topic, index).log.producer_state.producers
    except KafkaError as problem:
        return PartitionResponse(partition_index=index, error_code=error_code_of(problem), error_message=problem.detail)
    return PartitionResponse(partition_index=index, active_producers=[_producer(each) for each in producers.values()])


def _producer(producer: Producer) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.batches[-1].last_sequence if producer.batches else -1,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_txn_first_offset,
    )
