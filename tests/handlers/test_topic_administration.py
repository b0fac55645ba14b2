"""CreateTopics, DeleteTopics and CreatePartitions: the controller's outcomes as clients see them."""

from __future__ import annotations

import pytest

from kafkacompat.handlers.context import Pending
from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafkacompat.wire.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import ZERO_UUID
from tests.handlers.admin_node import AdminNode
from tests.kafkacompat.metadata.deferreds import has_fired


def make_topic(name: str, partitions: int = 1, factor: int = 1, **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def create(node: AdminNode, *topics: CreatableTopic, version: int = 7, validate: bool = False) -> CreateTopicsResponse:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate)
    return node.ask(request, CreateTopicsResponse, version)


def test_a_created_topic_is_returned_with_partitions_and_configs() -> None:
    node = AdminNode(log_retention_ms="7")
    (topic,) = create(node, make_topic("t", 2, segment_ms="5")).topics
    assert (topic.error_code, topic.error_message, topic.num_partitions, topic.replication_factor) == (0, None, 2, 1)
    assert topic.topic_id == node.holder.image.topics["t"].topic_id
    assert topic.configs is not None and len(topic.configs) == 33
    shown = {config.name: (config.value, config.config_source) for config in topic.configs}
    assert [config.name for config in topic.configs] == sorted(shown)
    assert (shown["segment.ms"], shown["retention.ms"], shown["cleanup.policy"]) == (("5", 1), ("7", 4), ("delete", 5))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_versions_return_no_details(version: int) -> None:
    (topic,) = create(AdminNode(), make_topic("t"), version=version).topics
    assert (topic.error_code, topic.topic_id, topic.num_partitions) == (0, ZERO_UUID, -1)


def test_version_0_knows_neither_messages_nor_a_check_alone() -> None:
    node = AdminNode()
    (made,) = create(node, make_topic("t"), version=0, validate=True).topics
    (refused,) = create(node, make_topic("t"), version=0).topics
    assert (made.error_code, list(node.holder.image.topics)) == (0, ["t"])
    assert (refused.error_code, refused.error_message) == (ErrorCode.TOPIC_ALREADY_EXISTS, "")


def test_manual_assignments() -> None:
    node = AdminNode()
    assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in (1, 0)]
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=assignments)
    assert create(node, topic).topics[0].num_partitions == 2


def test_each_topic_has_its_own_outcome() -> None:
    node = AdminNode()
    node.make_topic("there")
    response = create(
        node,
        make_topic("there"),
        make_topic("a b"),
        make_topic("twice"),
        make_topic("none", 0),
        make_topic("good"),
        make_topic("twice", 2),
    )
    assert {topic.name: topic.error_code for topic in response.topics} == {
        "there": ErrorCode.TOPIC_ALREADY_EXISTS,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "none": ErrorCode.INVALID_PARTITIONS,
        "good": 0,
        "twice": ErrorCode.INVALID_REQUEST,
    }
    assert len(response.topics) == 5
    assert all(topic.error_message for topic in response.topics if topic.error_code)
    assert sorted(node.holder.image.topics) == ["good", "there"]


def test_a_refused_request_fails_every_topic() -> None:
    response = create(AdminNode(), make_topic("a"), make_topic("b", 10_000))
    assert [topic.error_code for topic in response.topics] == [ErrorCode.POLICY_VIOLATION] * 2


def test_a_failing_store_fails_every_topic() -> None:
    node = AdminNode()
    node.store.failing = True
    assert create(node, make_topic("a")).topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_validate_only_makes_nothing() -> None:
    node = AdminNode()
    (topic,) = create(node, make_topic("t", 4), validate=True).topics
    assert (topic.error_code, topic.num_partitions) == (0, 4)
    assert node.holder.image.topics == {}


def test_the_next_request_waits_until_the_topic_is_there() -> None:
    node = AdminNode()
    node.events.hold = True
    pending = node.send(CreateTopicsRequest(topics=[make_topic("t")]), 7)
    assert isinstance(pending, Pending) and pending.in_order
    assert not has_fired(pending.response)
    node.events.waiting.pop().callback(None)
    assert has_fired(pending.response)


def delete(
    node: AdminNode, *topics: tuple[str | None, bytes], version: int = 6
) -> dict[tuple[str | None, bytes], tuple[int, bool]]:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name, topic_id=uuid) for name, uuid in topics])
    response = node.ask(request, DeleteTopicsResponse, version)
    return {(topic.name, topic.topic_id): (topic.error_code, bool(topic.error_message)) for topic in response.responses}


def test_delete_by_name_and_by_id() -> None:
    node = AdminNode()
    a, b = node.make_topic("a"), node.make_topic("b")
    assert delete(node, ("a", ZERO_UUID), (None, b)) == {("a", a): (0, False), ("b", b): (0, False)}
    assert node.holder.image.topics == {}


@pytest.mark.parametrize("version", [0, 1, 5])
def test_delete_by_name_before_there_were_ids(version: int) -> None:
    node = AdminNode()
    node.make_topic("a")
    request = DeleteTopicsRequest(topic_names=["a", "nope"])
    response = node.ask(request, DeleteTopicsResponse, version)
    outcomes = {topic.name: topic.error_code for topic in response.responses}
    assert outcomes == {"a": 0, "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_delete_refuses_absent_topics() -> None:
    node = AdminNode()
    a = node.make_topic("a")
    b = node.make_topic("b")
    refused = delete(
        node,
        ("nope", ZERO_UUID),
        (None, b"x" * 16),
        (None, ZERO_UUID),
        ("a", a),
        ("b", ZERO_UUID),
        (None, b),
        ("c", ZERO_UUID),
        ("c", ZERO_UUID),
    )
    invalid = (ErrorCode.INVALID_REQUEST, True)
    assert refused == {
        ("nope", ZERO_UUID): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        (None, b"x" * 16): (ErrorCode.UNKNOWN_TOPIC_ID, True),
        (None, ZERO_UUID): invalid,
        ("a", a): invalid,
        ("b", ZERO_UUID): invalid,
        (None, b): invalid,
        ("c", ZERO_UUID): invalid,
    }
    assert sorted(node.holder.image.topics) == ["a", "b"]


def test_an_error_shows_an_id_as_kafka_writes_it() -> None:
    wanted = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=b"u" * 16)])
    (answer,) = AdminNode().ask(wanted, DeleteTopicsResponse, 6).responses
    assert answer.error_message == "there is no topic with the id dXV1dXV1dXV1dXV1dXV1dQ"


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deleting_may_be_switched_off(version: int, code: ErrorCode) -> None:
    node = AdminNode(delete_topic_enable="false")
    node.make_topic("a")
    response = node.ask(DeleteTopicsRequest(topic_names=["a", "b"]), DeleteTopicsResponse, version)
    assert [topic.error_code for topic in response.responses] == [code, code]
    assert "a" in node.holder.image.topics


def test_deletion_by_a_failing_store() -> None:
    node = AdminNode()
    a = node.make_topic("a")
    node.store.failing = True
    assert delete(node, ("a", ZERO_UUID)) == {("a", a): (ErrorCode.KAFKA_STORAGE_ERROR, True)}


def grow(node: AdminNode, *topics: CreatePartitionsTopic, validate: bool = False) -> dict[str, int]:
    request = CreatePartitionsRequest(topics=list(topics), validate_only=validate)
    response = node.ask(request, CreatePartitionsResponse, 3)
    assert all(bool(result.error_message) == bool(result.error_code) for result in response.results)
    return {result.name: result.error_code for result in response.results}


def test_growing() -> None:
    node = AdminNode()
    node.make_topic("a")
    node.make_topic("b")
    assignments = [CreatePartitionsAssignment(broker_ids=[1])] * 2
    assert grow(
        node,
        CreatePartitionsTopic(name="a", count=3, assignments=assignments),
        CreatePartitionsTopic(name="b", count=1, assignments=None),
        CreatePartitionsTopic(name="c", count=1, assignments=None),
        CreatePartitionsTopic(name="d", count=1, assignments=None),
        CreatePartitionsTopic(name="d", count=2, assignments=None),
    ) == {
        "a": 0,
        "b": ErrorCode.INVALID_PARTITIONS,
        "c": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "d": ErrorCode.INVALID_REQUEST,
    }
    assert len(node.holder.image.topics["a"].partitions) == 3


def test_growing_only_to_see_whether_it_would_be_allowed() -> None:
    node = AdminNode()
    node.make_topic("a")
    assert grow(node, CreatePartitionsTopic(name="a", count=3, assignments=None), validate=True) == {"a": 0}
    assert len(node.holder.image.topics["a"].partitions) == 1


def test_growing_with_a_failing_store() -> None:
    node = AdminNode()
    node.make_topic("a")
    node.store.failing = True
    code = ErrorCode.KAFKA_STORAGE_ERROR
    assert grow(node, CreatePartitionsTopic(name="a", count=3, assignments=None)) == {"a": code}
