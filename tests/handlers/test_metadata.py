"""Metadata: brokers, leaders, and topics that requests create."""

from __future__ import annotations

import logging

import pytest

from kafkacompat.handlers.context import Pending
from kafkacompat.wire.apis.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import MIN_INT32, ZERO_UUID
from tests.handlers.admin_node import AdminNode
from tests.kafkacompat.metadata.deferreds import has_fired


def by_name(*names: str | None) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def ask(node: AdminNode, version: int = 13, auto_create: bool = False, **fields: object) -> MetadataResponse:
    request = MetadataRequest(allow_auto_topic_creation=auto_create, **fields)  # type: ignore[arg-type]
    return node.ask(request, MetadataResponse, version)


def list_errors(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


def test_brokers_and_cluster() -> None:
    response = ask(AdminNode(broker_rack="r1"), topics=[])
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (1, "10.0.0.5", 9092, "r1")
    assert (response.cluster_id, response.controller_id, response.error_code) == ("cluster-1", 1, 0)


def test_advertised_listeners_win_over_the_clients_own_connection() -> None:
    (broker,) = ask(AdminNode(advertised_listeners="PLAINTEXT://kafka:19092"), topics=[]).brokers
    assert (broker.host, broker.port) == ("kafka", 19092)


@pytest.mark.parametrize(("version", "topics"), [(0, []), (1, None), (13, None)])
def test_all_topics(version: int, topics: list[MetadataRequestTopic] | None) -> None:
    node = AdminNode()
    node.make_topic("a")
    node.make_topic("b")
    assert list_errors(ask(node, version, topics=topics)) == {"a": 0, "b": 0}


def test_an_empty_list_asks_for_none_from_version_1_on() -> None:
    node = AdminNode()
    node.make_topic("a")
    assert ask(node, 1, topics=[]).topics == []


def test_partitions() -> None:
    node = AdminNode()
    topic_id = node.make_topic("a", 2)
    (topic,) = ask(node, topics=by_name("a")).topics
    assert (topic.topic_id, topic.is_internal) == (topic_id, False)
    assert topic.partitions == [
        MetadataResponsePartition(
            partition_index=index, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1], offline_replicas=[]
        )
        for index in range(2)
    ]


def test_a_partition_that_takes_no_writes_has_no_leader() -> None:
    node = AdminNode()
    node.events.broken = {"a"}
    node.make_topic("a")
    (partition,) = ask(node, topics=by_name("a")).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_unknown_and_invalid_names() -> None:
    assert list_errors(ask(AdminNode(), topics=by_name("nope", "a b", "__consumer_offsets"))) == {
        "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "__consumer_offsets": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_name_given_twice_is_answered_once() -> None:
    node = AdminNode()
    node.make_topic("a")
    assert len(ask(node, topics=by_name("a", "a")).topics) == 1


def test_topics_by_id() -> None:
    node = AdminNode()
    topic_id = node.make_topic("a")
    topics = [MetadataRequestTopic(name=None, topic_id=uuid) for uuid in (topic_id, b"x" * 16)]
    response = ask(node, 12, topics=[*topics, *by_name("ignored")])
    assert [(topic.name, topic.topic_id, topic.error_code) for topic in response.topics] == [
        ("a", topic_id, 0),
        (None, b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize(
    ("version", "topic"),
    [
        (10, MetadataRequestTopic(name=None)),
        (11, MetadataRequestTopic(name="a", topic_id=b"x" * 16)),
        (12, MetadataRequestTopic(name=None, topic_id=ZERO_UUID)),
    ],
)
def test_malformed_topics_are_refused_as_a_whole(version: int, topic: MetadataRequestTopic) -> None:
    response = ask(AdminNode(), version, topics=[topic, *by_name("other")])
    assert [entry.error_code for entry in response.topics] == [ErrorCode.INVALID_REQUEST] * 2
    assert response.brokers == []


def test_authorized_operations_are_returned_on_request() -> None:
    node = AdminNode()
    node.make_topic("a")
    wanted = ask(
        node,
        10,
        topics=by_name("a", "nope"),
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    # The numbers that Apache Kafka 4.3.1 tells when it has no authorizer.
    assert wanted.cluster_authorized_operations == 8096
    assert [topic.topic_authorized_operations for topic in wanted.topics] == [3576, 3576]
    silent = ask(node, 10, topics=by_name("a"))
    assert silent.cluster_authorized_operations == silent.topics[0].topic_authorized_operations == MIN_INT32


def test_a_topic_that_is_asked_for_is_made_and_answered_with_its_leader() -> None:
    node = AdminNode(num_partitions="3")
    (topic,) = ask(node, 4, auto_create=True, topics=by_name("a")).topics
    assert topic.error_code == 0
    assert [partition.leader_id for partition in topic.partitions] == [1, 1, 1]


def test_a_created_topic_is_returned_once_its_leader_takes_writes() -> None:
    node = AdminNode()
    node.events.hold = True
    pending = node.send(MetadataRequest(topics=by_name("a")), 13)
    assert isinstance(pending, Pending) and pending.in_order
    assert not has_fired(pending.response)
    node.events.waiting.pop().callback(None)
    assert has_fired(pending.response)


@pytest.mark.parametrize(
    ("properties", "auto_create", "name"),
    [
        ({"auto_create_topics_enable": "false"}, True, "a"),
        ({}, False, "a"),
        ({}, True, "a b"),
        ({}, True, "__transaction_state"),
    ],
)
def test_topics_that_are_not_made(properties: dict[str, str], auto_create: bool, name: str) -> None:
    node = AdminNode(**properties)
    assert list_errors(ask(node, auto_create=auto_create, topics=by_name(name)))[name] != 0
    assert node.holder.image.topics == {}


def test_asking_for_all_topics_or_for_ids_makes_none() -> None:
    node = AdminNode()
    ask(node, auto_create=True, topics=None)
    ask(node, auto_create=True, topics=[MetadataRequestTopic(name=None, topic_id=b"x" * 16), *by_name("a")])
    assert node.holder.image.topics == {}


def test_why_a_topic_cannot_be_made_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    node = AdminNode(default_replication_factor="2")
    with caplog.at_level(logging.WARNING):
        response = ask(node, auto_create=True, topics=by_name("a"))
    assert list_errors(response) == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert "Cannot create requested topic a: a partition cannot have 2 replica(s)" in caplog.text


def test_a_failing_store_leaves_the_topic_unknown() -> None:
    node = AdminNode()
    node.store.failing = True
    response = ask(node, auto_create=True, topics=by_name("a"))
    assert list_errors(response) == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
