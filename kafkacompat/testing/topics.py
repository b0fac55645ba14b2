"""Creating topics, and appending to them, in the thread of the brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkacompat.testing.errors import BrokerError
from kafkacompat.testing.nodes import PATIENCE_S, TRANSIENT_ERRORS, Nodes
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.errors import ErrorCode, KafkaError, describe_code

if TYPE_CHECKING:
    from kafkacompat.wire.primitives import Buffer

PRODUCE_VERSION = 12
"""The last version that names topics."""
ALL_IN_SYNC_REPLICAS = -1
REPEATED_ERRORS = TRANSIENT_ERRORS - {ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.REQUEST_TIMED_OUT}
"""Errors after which an append is repeated: after the others the log may have the records already."""


async def create_topic(
    nodes: Nodes, name: str, partitions: int, replicas: int, configs: Mapping[str, str], *, may_exist: bool = False
) -> None:
    """Create a topic; returns when each broker knows it and all partitions have leaders.

    Raises BrokerError, also if the topic exists, except with *may_exist*.
    """
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=int(PATIENCE_S * 1000))
    error = message = None

    async def create() -> bool:
        nonlocal error, message
        (result,) = (await nodes.running[0].request(request)).topics
        error, message = result.error_code, result.error_message
        return error not in TRANSIENT_ERRORS

    await nodes.wait_until(create, PATIENCE_S)
    if error and not (may_exist and error == ErrorCode.TOPIC_ALREADY_EXISTS):
        raise BrokerError(f"topic {name} cannot be created: {describe_code(error, message)}")
    if not await nodes.wait_until(lambda: _is_led_everywhere(nodes, name), PATIENCE_S):
        raise BrokerError(f"topic {name} has a partition without a leader after {PATIENCE_S:g} s")


async def delete_topic(nodes: Nodes, name: str) -> None:
    """Delete a topic; returns when no broker knows it. Raises BrokerError."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=int(PATIENCE_S * 1000))
    (result,) = (await nodes.running[0].request(request)).responses
    if result.error_code:
        raise BrokerError(f"topic {name} cannot be deleted: {describe_code(result.error_code, result.error_message)}")

    async def is_gone() -> bool:
        return not any(name in node.broker.metadata.image.topics for node in nodes.running)

    if not await nodes.wait_until(is_gone, PATIENCE_S):
        raise BrokerError(f"topic {name} is still there after {PATIENCE_S:g} s")


async def ensure_topic(nodes: Nodes, name: str) -> int:
    """Return the number of a topic's partitions; a missing topic is created with the broker's defaults."""
    if nodes.find_topic(name) is None:
        # A client may create it at the same time.
        await create_topic(nodes, name, -1, -1, {}, may_exist=True)
    topic = nodes.find_topic(name)
    assert topic is not None
    return len(topic.partitions)


async def append(nodes: Nodes, topic: str, batches: Mapping[int, Buffer]) -> None:
    """Append a batch to each of some partitions, on all in-sync replicas; raises BrokerError."""
    for partition, batch in batches.items():
        error, message = ErrorCode.LEADER_NOT_AVAILABLE, "there is no leader"

        async def append_one(partition: int = partition, batch: Buffer = batch) -> bool:
            nonlocal error, message
            error, message = await _append_batch(nodes, topic, partition, batch)
            return error not in REPEATED_ERRORS

        await nodes.wait_until(append_one, PATIENCE_S)
        if error:
            raise BrokerError(
                f"partition {partition} of topic {topic} rejects records: {describe_code(error, message)}"
            )


async def _append_batch(nodes: Nodes, topic: str, partition: int, batch: Buffer) -> tuple[ErrorCode, str]:
    leader = nodes.find_leader(topic, partition)
    if leader is None:
        image = nodes.find_topic(topic)
        if image is not None and not 0 <= partition < len(image.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"it has {len(image.partitions)} partitions"
        return ErrorCode.LEADER_NOT_AVAILABLE, "there is no leader"
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
    request = ProduceRequest(acks=ALL_IN_SYNC_REPLICAS, timeout_ms=int(PATIENCE_S * 1000), topic_data=[data])
    response = await leader.request(request, PRODUCE_VERSION)
    (outcome,) = response.responses[0].partition_responses
    return ErrorCode(outcome.error_code), outcome.error_message or ""


async def _is_led_everywhere(nodes: Nodes, name: str) -> bool:
    for node in nodes.running:
        topic = node.broker.metadata.image.topics.get(name)
        if topic is None or not all(_is_led(nodes, name, image.partition) for image in topic.partitions):
            return False
    return True


def _is_led(nodes: Nodes, topic: str, partition: int) -> bool:
    leader = nodes.find_leader(topic, partition)
    try:
        return leader is not None and leader.broker.replica_manager.find(topic, partition).is_leader
    except KafkaError:
        return False
