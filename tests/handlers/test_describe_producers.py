"""DescribeProducers."""

from __future__ import annotations

from kafkacompat.wire.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.handlers.data_node import NOW_MS, DataNode


def describe_producers(node: DataNode, topic: str, *partitions: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(partitions))])
    return node.ask(request, DescribeProducersResponse, 0).topics[0].partitions


def test_producers_are_described_with_their_last_batch() -> None:
    node = DataNode()
    for sequence in (0, 2):
        record = (NOW_MS + sequence, b"k", b"v", ())
        node.append("t", 0, build_batch([record, record], producer_id=9, producer_epoch=3, base_sequence=sequence))
    written, unwritten = describe_producers(node, "t", 0, 1)
    (producer,) = written.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (9, 3, 3)
    assert (producer.last_timestamp, producer.coordinator_epoch) == (NOW_MS + 2, -1)
    assert producer.current_txn_start_offset == -1
    assert (unwritten.error_code, unwritten.active_producers) == (0, [])


def test_a_partition_named_many_times_is_described_once() -> None:
    topics = [TopicRequest(name="t", partition_indexes=indexes) for indexes in ([0, 0], [1, 0])]
    (topic,) = DataNode().ask(DescribeProducersRequest(topics=topics), DescribeProducersResponse, 0).topics
    assert [partition.partition_index for partition in topic.partitions] == [0, 1]


def test_producers_of_an_absent_partition_are_refused() -> None:
    node = DataNode()
    assert [partition.error_code for partition in describe_producers(node, "t", 2, -1)] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ] * 2
    assert describe_producers(node, "absent", 0)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe_producers(node, "no/slashes", 0)[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    node.node.replicas.take_directory_offline(node.node.directories[0], OSError("gone"))
    assert describe_producers(node, "t", 0)[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
