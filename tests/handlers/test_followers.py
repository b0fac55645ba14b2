"""Requests for partitions that other brokers lead."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kafkacompat.wire.apis.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafkacompat.wire.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkacompat.wire.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.data_node import T_ID
from tests.handlers.replicated_node import ReplicatedNode

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
def node() -> ReplicatedNode:
    """Broker 1 follows broker 2 with three records of t-0."""
    made = ReplicatedNode()
    made.write(3)
    made.follow(2)
    return made


def list_offset(node: ReplicatedNode, topic: str, index: int = 0) -> int:
    wanted = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=index, timestamp=-1)])
    response = node.ask(ListOffsetsRequest(topics=[wanted]), ListOffsetsResponse, 7)
    return response.topics[0].partitions[0].error_code


def test_offsets_are_the_leaders(node: ReplicatedNode) -> None:
    assert list_offset(node, "t") == NOT_LEADER


def test_producers_are_described_by_the_leader(node: ReplicatedNode) -> None:
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0, 1])])
    first, second = node.ask(request, DescribeProducersResponse, 0).topics[0].partitions
    assert (first.error_code, second.error_code) == (NOT_LEADER, 0)
    assert first.error_message == "this broker does not lead t-0"


def test_records_are_deleted_by_the_leader(node: ReplicatedNode) -> None:
    wanted = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])
    response = node.ask(DeleteRecordsRequest(topics=[wanted]), DeleteRecordsResponse, 2)
    assert response.topics[0].partitions[0].error_code == NOT_LEADER


def test_epochs_are_the_leaders(node: ReplicatedNode) -> None:
    wanted = OffsetForLeaderTopic(topic="t", partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=1)])
    response = node.ask(OffsetForLeaderEpochRequest(topics=[wanted]), OffsetForLeaderEpochResponse, 4)
    assert response.topics[0].partitions[0].error_code == NOT_LEADER


def test_followers_are_found_in_their_directories(node: ReplicatedNode) -> None:
    response = node.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
    (topic,) = (topic for topic in response.results[0].topics if topic.name == "t")
    first = topic.partitions[0]
    size_bytes = node.partition.log.size_bytes
    assert (first.partition_index, first.partition_size, first.offset_lag) == (0, size_bytes, 0) and size_bytes


def test_a_partition_of_other_brokers_only(node: ReplicatedNode) -> None:
    assert list_offset(node, "elsewhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    image = node.services.metadata.image
    topics = {**image.topics, "elsewhere": image.topics["t"]._replace(name="elsewhere", topic_id=b"e" * 16)}
    node.services.metadata.publish(image.with_topics(topics))
    node.services.replica_manager.is_elsewhere = lambda topic, index: node.services.metadata.image.has_partition(
        topic, index
    )
    assert list_offset(node, "elsewhere") == NOT_LEADER
    assert list_offset(node, "elsewhere", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(node, "absent") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_metadata_has_partitions_by_name_and_by_id(node: ReplicatedNode) -> None:
    image = node.services.metadata.image
    assert image.has_partition("t", 0) and image.has_partition(T_ID, 0)
    assert not image.has_partition("t", 1) and not image.has_partition("t", -1)
    assert not image.has_partition(b"?" * 16, 0) and not image.has_partition("u", 0)
