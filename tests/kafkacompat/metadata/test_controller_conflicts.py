"""The controller and its store: what others wrote meanwhile, stores that fail, answers that are lost."""

from __future__ import annotations

from twisted.internet.defer import succeed

from kafkacompat.metadata.store import StoreEntry
from kafkacompat.metadata.topic_changes import NewPartitions, NewTopic
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.kafkacompat.metadata.deferreds import outcome, refusal
from tests.kafkacompat.metadata.node import Node


def test_a_conflicting_change_is_planned_again_on_the_stored_state() -> None:
    node = Node()
    other = Node(seed=5)
    theirs = other.create("t", 3)

    def interfere() -> None:
        node.store.before_write = lambda: None
        node.store.entries.update({key: entry for key, entry in other.store.entries.items() if "/topics/" in key})

    node.store.before_write = interfere
    results = outcome(node.controller.create_topics([NewTopic("t", 1, 1), NewTopic("u", 1, 1)]))
    assert isinstance(results[0], KafkaError) and results[0].code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert node.holder.image.topics["t"].topic_id == theirs.topic_id
    assert sorted(node.events.notifications) == [("open", "t"), ("open", "u")]


def test_a_topic_that_another_one_made_again_is_deleted_and_opened() -> None:
    node = Node()
    node.create("t")
    other = Node(seed=5)
    other.create("t")
    assert outcome(other.controller.create_partitions([NewPartitions("t", 3)])) == [None]

    def interfere() -> None:
        node.store.before_write = lambda: None
        node.store.entries = {key: entry for key, entry in node.store.entries.items() if "/topics/" not in key}
        node.store.entries.update({key: entry for key, entry in other.store.entries.items() if "/topics/" in key})

    node.store.before_write = interfere
    assert outcome(node.controller.create_partitions([NewPartitions("t", 4)])) == [None]
    assert node.events.notifications == [("open", "t"), ("delete", "t"), ("open", "t")]
    assert len(node.holder.image.topics["t"].partitions) == 4


def test_endless_conflicts_end_in_an_error() -> None:
    node = Node()

    def interfere() -> None:
        entry = node.store.entries.get("/cluster/id")
        assert entry is not None
        node.store.entries["/brokers/topics/t"] = StoreEntry(b"{}", 0)
        node.store.load = lambda: succeed({"/cluster/id": entry})  # type: ignore[method-assign]

    node.store.before_write = interfere
    assert refusal(node.controller.create_topics([NewTopic("t", 1, 1)])) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert node.holder.image.topics == {}


def test_a_failing_store_changes_nothing_and_is_asked_again() -> None:
    node = Node()
    node.store.failing = True
    assert refusal(node.controller.create_topics([NewTopic("t", 1, 1)])) == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.events.notifications == [] and node.holder.image.topics == {}
    node.store.failing = False
    node.create("t")


def test_a_change_whose_answer_was_lost_is_found_at_the_next_one() -> None:
    node = Node()
    node.store.lose_answers = True
    assert refusal(node.controller.create_topics([NewTopic("t", 1, 1)])) == ErrorCode.KAFKA_STORAGE_ERROR
    node.store.lose_answers = False
    node.create("u")
    assert sorted(node.holder.image.topics) == ["t", "u"]
    assert sorted(node.events.notifications) == [("open", "t"), ("open", "u")]
