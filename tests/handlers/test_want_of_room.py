"""Requests besides Produce that a broker with full disks refuses."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.handlers.admin_node import AdminNode


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> AdminNode:
    """A node with a topic t, whose disks are full."""
    node = AdminNode()
    node.make_topic("t")

    def refuse() -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "/a is full")

    monkeypatch.setattr(node.directories, "check_room", refuse)
    return node


def test_new_topics_are_refused_and_existing_ones_reported(full: AdminNode) -> None:
    for name, code in (("u", ErrorCode.KAFKA_STORAGE_ERROR), ("t", ErrorCode.TOPIC_ALREADY_EXISTS)):
        wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        answer = full.ask(CreateTopicsRequest(topics=[wanted]), CreateTopicsResponse, 7)
        assert answer.topics[0].error_code == code
    assert set(full.holder.image.topics) == {"t"}


def test_topics_do_not_grow(full: AdminNode) -> None:
    wanted = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=2)])
    answer = full.ask(wanted, CreatePartitionsResponse, 3)
    assert (answer.results[0].error_code, answer.results[0].error_message) == (
        ErrorCode.KAFKA_STORAGE_ERROR,
        "/a is full",
    )


def test_an_absent_topic_is_reported_before_the_full_disk(full: AdminNode) -> None:
    wanted = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="absent", count=2)])
    answer = full.ask(wanted, CreatePartitionsResponse, 3)
    assert answer.results[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_asking_for_a_topic_does_not_make_it(full: AdminNode, caplog: pytest.LogCaptureFixture) -> None:
    answer = full.ask(MetadataRequest(topics=[MetadataRequestTopic(name="u")]), MetadataResponse, 9)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (caplog.records, set(full.holder.image.topics)) == ([], {"t"})
