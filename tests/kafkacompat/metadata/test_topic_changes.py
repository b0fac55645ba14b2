"""Kafka's rules for making and growing topics, on a draft."""

from __future__ import annotations

from random import Random

import pytest

from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.topic_changes import (
    NewPartitions,
    NewTopic,
    TopicPlanner,
    delete_topic,
    elect_leaders,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

CONFIG = BrokerConfig.load("node.id=1\nnum.partitions=4\ndefault.replication.factor=2")
CHANGES = TopicPlanner(CONFIG, Random(1))


def make_draft(*nodes: int) -> MetadataDraft:
    brokers = {node: BrokerImage(node, None, {}) for node in nodes or (1, 2, 3)}
    return MetadataDraft(MetadataImage(brokers=brokers))


def catch_code(new: NewTopic, on: MetadataDraft | None = None) -> ErrorCode:
    on = on or make_draft()
    before = dict(on.topics)
    with pytest.raises(KafkaError) as problem:
        CHANGES.create_topic(on, new)
    assert on.topics == before
    assert problem.value.detail and "\n" not in problem.value.detail
    return problem.value.code


def test_replicas_go_round_and_the_first_one_leads() -> None:
    topic = CHANGES.create_topic(make_draft(), NewTopic("t", 3, 2))
    replicas = [partition.replicas for partition in topic.partitions]
    assert sorted(replicas) in ([(1, 2), (2, 3), (3, 1)], [(1, 3), (2, 1), (3, 2)])
    for index, partition in enumerate(topic.partitions):
        assert partition == PartitionImage(index, replicas[index][0], 0, replicas[index], replicas[index], 0)


def test_the_first_leader_differs_from_topic_to_topic() -> None:
    leaders = {CHANGES.create_topic(make_draft(), NewTopic("t", 1, 1)).partitions[0].leader for _ in range(50)}
    assert leaders == {1, 2, 3}


def test_counts_left_open_are_the_brokers() -> None:
    topic = CHANGES.create_topic(make_draft(), NewTopic("t"))
    assert [len(partition.replicas) for partition in topic.partitions] == [2, 2, 2, 2]


def test_manual_assignment_in_any_order() -> None:
    topic = CHANGES.create_topic(make_draft(), NewTopic("t", assignments=[(1, [3, 1]), (0, [2, 3])]))
    assert [partition.replicas for partition in topic.partitions] == [(2, 3), (3, 1)]


def test_configs_are_kept_with_the_topic() -> None:
    on = make_draft()
    CHANGES.create_topic(on, NewTopic("t", 1, 1, configs={"retention.ms": "5"}))
    assert on.configs == {(ResourceType.TOPIC, "t"): {"retention.ms": "5"}}


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ü", "a/b", "x" * 250])
def test_invalid_names(name: str) -> None:
    assert catch_code(NewTopic(name, 1, 1)) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_valid_names() -> None:
    on = make_draft()
    for name in ("x" * 249, "A-z_0.9", "__consumer_offsets", "-"):
        CHANGES.create_topic(on, NewTopic(name, 1, 1))


def test_existing_and_colliding_names() -> None:
    on = make_draft()
    CHANGES.create_topic(on, NewTopic("a.b", 1, 1))
    assert catch_code(NewTopic("a.b", 1, 1), on) == ErrorCode.TOPIC_ALREADY_EXISTS
    assert catch_code(NewTopic("a_b", 1, 1), on) == ErrorCode.INVALID_TOPIC_EXCEPTION
    CHANGES.create_topic(on, NewTopic("a-b", 1, 1))
    delete_topic(on, on.topics["a.b"].topic_id)
    CHANGES.create_topic(on, NewTopic("a_b", 1, 1))


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewTopic("__cluster_metadata", 1, 1), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, -1, assignments=[(0, [1])]), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", -1, 1, assignments=[(0, [1])]), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", assignments=[(0, [1]), (0, [2])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[(1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[(0, [9])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[(0, [1, 1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[(0, [1]), (1, [1, 2])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", 1, 1, configs={"no.such": "1"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", 1, 1, configs={"retention.ms": "x"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", 1, 1, configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", 0, 1, configs={"retention.ms": "x"}), ErrorCode.INVALID_CONFIG),
    ],
)
def test_refuses_as_kafka_does(new: NewTopic, code: ErrorCode) -> None:
    assert catch_code(new) == code


@pytest.mark.parametrize(
    ("wanted", "allowed"),
    [
        ([NewTopic("t", 10_000, 1)], True),
        ([NewTopic("t", 10_001, 1)], False),
        ([NewTopic("t", 2**31 - 1, 1)], False),
        ([NewTopic("a", 9_997, 1), NewTopic("b")], False),
        ([NewTopic("a", 9_996, 1), NewTopic("b"), NewTopic("c", -7)], True),
        ([NewTopic("a", assignments=[(index, [1]) for index in range(10_001)])], False),
    ],
)
def test_one_request_may_not_ask_for_too_many_partitions(wanted: list[NewTopic], allowed: bool) -> None:
    if allowed:
        return CHANGES.check_size(wanted)
    with pytest.raises(KafkaError) as problem:
        CHANGES.check_size(wanted)
    assert problem.value.code == ErrorCode.POLICY_VIOLATION


def grow_topic(more: NewPartitions) -> TopicImage:
    on = make_draft()
    CHANGES.create_topic(on, NewTopic("t", 2, 2))
    CHANGES.add_partitions(on, more)
    return on.topics["t"]


def test_grown_partitions_have_the_topics_replication_factor() -> None:
    topic = grow_topic(NewPartitions("t", 5))
    assert [partition.partition for partition in topic.partitions] == [0, 1, 2, 3, 4]
    assert {len(partition.replicas) for partition in topic.partitions} == {2}


def test_grown_partitions_may_be_assigned() -> None:
    topic = grow_topic(NewPartitions("t", 4, [[3, 1], [1, 2]]))
    assert [partition.replicas for partition in topic.partitions[2:]] == [(3, 1), (1, 2)]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (NewPartitions("other", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions("t", 2), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", -1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 2**31 - 1), ErrorCode.POLICY_VIOLATION),
        (NewPartitions("t", 4, [[1, 2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[9, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_refuses_growth_as_kafka_does(more: NewPartitions, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as problem:
        grow_topic(more)
    assert problem.value.code == code


def test_a_topic_does_not_grow_during_a_reassignment() -> None:
    on = make_draft()
    moving = PartitionImage(0, 1, 0, (2, 1), (1,), 0, adding_replicas=(2,), removing_replicas=(1,))
    on.put_topic(TopicImage("t", b"i" * 16, (moving,)))
    with pytest.raises(KafkaError) as problem:
        CHANGES.add_partitions(on, NewPartitions("t", 2))
    assert problem.value.code == ErrorCode.REASSIGNMENT_IN_PROGRESS


def test_growth_continues_from_the_first_partition() -> None:
    on = make_draft(1, 2, 3, 4)
    CHANGES.create_topic(on, NewTopic("t", assignments=[(0, [2, 4]), (1, [1, 2])]))
    CHANGES.add_partitions(on, NewPartitions("t", 4))
    assert [partition.replicas for partition in on.topics["t"].partitions[2:]] == [(4, 2), (1, 3)]


def test_brokers_that_shut_down_get_replicas_but_lead_nothing() -> None:
    changes = TopicPlanner(CONFIG, Random(1), shutting_down=(1, 3))
    topic = changes.create_topic(make_draft(), NewTopic("t", assignments=[(0, [1, 2]), (1, [3, 1])]))
    assert topic.partitions == (PartitionImage(0, 2, 0, (1, 2), (2,), 0), PartitionImage(1, -1, -1, (3, 1), (), -1))


def test_racks_on_some_brokers_only_are_refused() -> None:
    brokers = {1: BrokerImage(1, "a", {}), 2: BrokerImage(2, None, {})}
    assert (
        catch_code(NewTopic("t", 1, 1), MetadataDraft(MetadataImage(brokers=brokers))) == ErrorCode.UNKNOWN_SERVER_ERROR
    )


def test_an_election_gives_each_partition_a_new_epoch() -> None:
    on = make_draft(1, 2)
    on.put_topic(
        TopicImage("t", b"i" * 16, (PartitionImage(0, 1, 4, (1, 2), (2,), 6), PartitionImage(1, 2, 0, (2,), (2,), 0)))
    )
    elect_leaders(on, 1)
    assert on.topics["t"].partitions == (
        PartitionImage(0, 1, 5, (1, 2), (1,), 7),
        PartitionImage(1, -1, 1, (2,), (2,), 1),
    )


def test_a_broker_with_only_cordoned_directories_gets_assigned_replicas_only() -> None:
    config = CONFIG.with_changes({}, {"cordoned.log.dirs": "*"})
    changes, on = TopicPlanner(config, Random(1)), make_draft(1, 2)
    placed = changes.create_topic(on, NewTopic("placed", 3, 1))
    assert {partition.replicas for partition in placed.partitions} == {(2,)}
    with pytest.raises(KafkaError) as problem:
        changes.create_topic(on, NewTopic("more", 1, 2))
    assert problem.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(KafkaError) as problem:
        TopicPlanner(config, Random(1)).add_partitions(on_one := make_draft(1), _create_and_grow(on_one))
    assert problem.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    assigned = changes.create_topic(on, NewTopic("assigned", assignments=[(0, [1])]))
    assert assigned.partitions[0].replicas == (1,)


def _create_and_grow(on: MetadataDraft) -> NewPartitions:
    CHANGES.create_topic(on, NewTopic("t", 1, 1))
    return NewPartitions("t", 2)
