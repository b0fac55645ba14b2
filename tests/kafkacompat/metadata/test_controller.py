"""The controller commits a change first, then notifies the replicas, then publishes the change."""

from __future__ import annotations

import logging
from random import Random

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata import codec
from kafkacompat.metadata.changes import MAX_TOPICS_NAMED
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.metadata.controller import Controller
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import NO_LEADER, ImageHolder, TopicImage
from kafkacompat.metadata.store import StoreEntry, StoreError
from kafkacompat.metadata.topic_changes import NewPartitions, NewTopic
from kafkacompat.metadata.znodes.cluster import encode_producer_ids
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import parse_uuid
from tests.fakes.partition_events import RecordingEvents
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal
from tests.kafkacompat.metadata.node import CONFIG, Node


def test_the_first_image_shows_this_broker() -> None:
    node = Node()
    image = node.holder.image
    assert image.version == 1
    assert (image.cluster_id, image.controller_id) == (node.cluster_id, 1)
    assert image.brokers[1].rack == "r1"
    assert image.brokers[1].endpoints == {"PLAINTEXT": ("kafka", 9092)}
    assert len(parse_uuid(node.cluster_id)) == 16


def test_the_clusters_id_is_kept_and_held_against_the_log_directories() -> None:
    store = Node(cluster_id="given").store
    assert Node(store).cluster_id == "given"
    assert Node(store, cluster_id="given").cluster_id == "given"
    with pytest.raises(StoreError, match="the cluster given and the log directories to other"):
        Node(store, cluster_id="other")


def test_a_topic_is_published_once_its_partitions_take_writes() -> None:
    node = Node()
    node.events.hold = True
    creating = node.controller.create_topics([NewTopic("t", 2, 1)])
    assert "/brokers/topics/t" in node.store.entries
    assert node.events.notifications == [("open", "t")]
    assert not has_fired(creating) and node.holder.image.topics == {}
    node.events.waiting.pop().callback(None)
    (topic,) = outcome(creating)
    assert node.holder.image.topics == {"t": topic}
    assert isinstance(topic, TopicImage)
    assert node.holder.image.topics_by_id == {topic.topic_id: topic}
    assert node.holder.image.version == 2


def test_a_request_that_creates_topics_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    node = Node()
    outcome(node.controller.create_topics([NewTopic("orders", 6, 1)]))
    outcome(node.controller.create_topics([NewTopic("a", 1, 1), NewTopic("orders", 6, 1), NewTopic("b", 2, 1)]))
    outcome(node.controller.create_topics([NewTopic("c", 1, 1)], validate_only=True))
    outcome(node.controller.create_topics([NewTopic("orders", 6, 1)]))
    outcome(node.controller.create_topics([NewTopic(f"t{number}", 1, 1) for number in range(MAX_TOPICS_NAMED + 1)]))
    assert caplog.messages[:2] == [
        "Created topic orders: 6 partitions",
        "Created 2 topics: a (1 partition), b (2 partitions)",
    ]
    assert len(caplog.messages) == 3 and caplog.messages[2].endswith("t99 (1 partition), ...")
    caplog.clear()
    Node(node.store)
    assert caplog.messages == []


def test_the_log_configuration_is_known_when_the_partitions_are_opened() -> None:
    node = Node()
    node.events.hold = True
    node.controller.create_topics([NewTopic("t", 1, 1, configs={"retention.ms": "5"})])
    assert node.effective.log_config_of("t").retention_ms == 5


def test_a_topic_that_is_not_allowed_leaves_the_others_alone() -> None:
    node = Node()
    results = outcome(node.controller.create_topics([NewTopic("a b", 1, 1), NewTopic("t", 1, 1), NewTopic("t", 1, 1)]))
    codes = [result.code if isinstance(result, KafkaError) else ErrorCode.NONE for result in results]
    assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]
    assert list(node.holder.image.topics) == ["t"]


def test_a_refusal_holds_no_traceback() -> None:
    """With its traceback it would hold the request that holds it, of a hundred thousand topics if need be."""
    (refused,) = outcome(Node().controller.create_topics([NewTopic("no name", 1, 1)]))
    assert isinstance(refused, KafkaError)
    assert refused.__traceback__ is None


def test_a_request_for_too_much_fails_as_a_whole() -> None:
    node = Node()
    too_much = node.controller.create_topics([NewTopic("a", 1, 1), NewTopic("b", 10_000, 1)])
    assert refusal(too_much) == ErrorCode.POLICY_VIOLATION
    assert node.holder.image.topics == {}


def test_validate_only_changes_nothing() -> None:
    node = Node()
    node.create("t")
    entries, notifications = dict(node.store.entries), list(node.events.notifications)
    (topic,) = outcome(node.controller.create_topics([NewTopic("v", 3, 1)], validate_only=True))
    assert isinstance(topic, TopicImage) and len(topic.partitions) == 3
    assert outcome(node.controller.create_partitions([NewPartitions("t", 9)], validate_only=True)) == [None]
    operation = ConfigOperation("retention.ms", ConfigOperationType.SET, "5")
    change = ResourceChange(ResourceType.TOPIC, "t", [operation])
    assert outcome(node.controller.alter_configs([change], validate_only=True)) == [None]
    assert node.store.entries == entries
    assert node.events.notifications == notifications
    assert list(node.holder.image.topics) == ["t"] and node.holder.image.configs == {}


def test_a_deleted_topic_is_gone_before_its_files_go() -> None:
    node = Node()
    topic = node.create("t", retention_ms="5")
    node.events.hold = True
    deleting = node.controller.delete_topics([topic.topic_id])
    assert node.events.notifications[-1] == ("delete", "t")
    assert node.holder.image.topics == {} and node.holder.image.topics_by_id == {}
    assert not has_fired(deleting)
    node.events.waiting.pop().callback(None)
    assert outcome(deleting) == [None]
    assert [key for key in node.store.entries if "/t" in key] == []


def test_a_topic_may_be_made_again_and_is_another_one() -> None:
    node = Node()
    first = node.create("t")
    assert outcome(node.controller.delete_topics([first.topic_id])) == [None]
    assert node.create("t").topic_id != first.topic_id


def test_making_a_topic_again_waits_for_the_old_ones_files() -> None:
    node = Node()
    topic = node.create("t")
    node.events.hold = True
    node.controller.delete_topics([topic.topic_id])
    node.controller.create_topics([NewTopic("t", 1, 1)])
    assert node.events.notifications == [("open", "t"), ("delete", "t")]
    node.events.waiting.pop().callback(None)
    assert node.events.notifications[-1] == ("open", "t")


def test_deleting_an_absent_topic_is_refused() -> None:
    node = Node()
    topic = node.create("t")
    results = outcome(node.controller.delete_topics([b"x" * 16, topic.topic_id, topic.topic_id]))
    assert [result and result.code for result in results] == [
        ErrorCode.UNKNOWN_TOPIC_ID,
        None,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]


def test_partitions_added_are_published_once_they_take_writes() -> None:
    node = Node()
    node.create("t", 2)
    node.events.hold = True
    growing = node.controller.create_partitions([NewPartitions("t", 5), NewPartitions("u", 5)])
    assert len(node.holder.image.topics["t"].partitions) == 2
    node.events.waiting.pop().callback(None)
    results = outcome(growing)
    assert results[0] is None and results[1] is not None
    assert len(node.holder.image.topics["t"].partitions) == 5


def test_a_changed_topic_config_reaches_its_logs() -> None:
    node = Node()
    node.create("t")
    node.create("u")
    count = len(node.events.notifications)
    assert node.configure(ResourceType.TOPIC, "t", "retention.ms", "5") is None
    assert node.events.notifications[count:] == [("configure", "t")]
    assert node.effective.log_config_of("t").retention_ms == 5
    assert node.holder.image.config(ResourceType.TOPIC, "t") == {"retention.ms": "5"}


def test_a_changed_broker_config_reaches_every_log() -> None:
    node = Node()
    node.create("t")
    node.create("u", retention_ms="7")
    count = len(node.events.notifications)
    assert node.configure(ResourceType.BROKER, "", "log.retention.ms", "5") is None
    assert node.events.notifications[count:] == [("configure", "t"), ("configure", "u")]
    assert node.effective.config.int("log.retention.ms") == 5
    assert [node.effective.log_config_of(name).retention_ms for name in ("t", "u")] == [5, 7]


def test_a_groups_config_is_kept_and_reaches_no_log() -> None:
    node = Node()
    node.create("t")
    count = len(node.events.notifications)
    assert node.configure(ResourceType.GROUP, "g", "consumer.session.timeout.ms", "50000") is None
    assert node.events.notifications[count:] == []
    assert Node(node.store).holder.image.config(ResourceType.GROUP, "g") == {"consumer.session.timeout.ms": "50000"}


def test_after_a_restart_everything_is_there_under_new_leader_epochs() -> None:
    node = Node()
    topic = node.create("t", 2, retention_ms="5")
    assert node.configure(ResourceType.BROKER, "1", "log.roll.ms", "6") is None
    again = Node(node.store, seed=2)
    assert again.cluster_id == node.cluster_id
    restarted = again.holder.image.topics["t"]
    assert restarted.topic_id == topic.topic_id
    assert [
        (partition.leader, partition.leader_epoch, partition.partition_epoch) for partition in restarted.partitions
    ] == [(1, 1, 1)] * 2
    assert again.events.notifications == [("open", "t")]
    config = again.effective.log_config_of("t")
    assert (config.retention_ms, config.segment_ms) == (5, 6)
    assert Node(node.store).holder.image.topics["t"].partitions[0].leader_epoch == 2


def test_a_leader_epoch_begins_on_demand_for_one_partition() -> None:
    node = Node()
    node.create("t", 2)
    elected = outcome(node.controller.begin_leader_epoch("t", 1))
    assert (elected.leader, elected.leader_epoch, elected.partition_epoch) == (1, 1, 1)
    assert [partition.leader_epoch for partition in node.holder.image.topics["t"].partitions] == [0, 1]
    with pytest.raises(KafkaError, match="there is no partition t-2"):
        outcome(node.controller.begin_leader_epoch("t", 2))


def test_nothing_is_published_before_the_partitions_are_open() -> None:
    store = Node().store
    first = Node(store)
    first.create("t")
    events, holder = RecordingEvents(), ImageHolder()
    events.hold = True
    controller = Controller(store, holder, events, EffectiveConfig(CONFIG), CONFIG, Random(1))
    outcome(controller.load(None))
    starting = controller.start()
    assert holder.image.version == 0 and not has_fired(starting)
    events.waiting.pop().callback(None)
    outcome(starting)
    assert list(holder.image.topics) == ["t"]


def test_a_partition_that_cannot_be_opened_has_no_leader() -> None:
    node = Node()
    node.create("t", 2)
    node.events.broken = {"t", "u"}
    node.create("u")
    assert outcome(node.controller.create_partitions([NewPartitions("t", 3)])) == [None]
    assert [partition.leader for partition in node.holder.image.topics["t"].partitions] == [1, 1, NO_LEADER]
    assert node.holder.image.topics["u"].partitions[0].leader == NO_LEADER
    node.events.broken = set()
    node.create("v")
    assert node.holder.image.topics["u"].partitions[0].leader == NO_LEADER
    assert Node(node.store).holder.image.topics["u"].partitions[0].leader == 1


def test_files_that_cannot_be_deleted_do_not_bring_a_topic_back() -> None:
    node = Node()
    topic = node.create("t")
    node.events.broken = {"t"}
    assert outcome(node.controller.delete_topics([topic.topic_id])) == [None]
    assert node.holder.image.topics == {}


def test_producer_ids_are_never_given_twice() -> None:
    node = Node()
    first = [outcome(node.controller.producer_ids.next()) for _ in range(1001)]
    assert first == list(range(1001))
    assert outcome(Node(node.store).controller.producer_ids.next()) == 2000


def test_a_producer_id_comes_after_its_block_is_stored() -> None:
    node = Node()
    node.store.failing = True
    assert refusal(node.controller.producer_ids.next()) == ErrorCode.KAFKA_STORAGE_ERROR
    node.store.failing = False
    node.store.before_write = lambda: (
        node.store.entries.setdefault(codec.PRODUCER_IDS, StoreEntry(encode_producer_ids(2, range(1000)), 0)) and None
    )
    assert outcome(node.controller.producer_ids.next()) == 1000


def test_changes_are_made_one_after_the_other() -> None:
    node = Node()
    node.events.hold = True
    waiting: list[Deferred[list[TopicImage | KafkaError]]] = [
        node.controller.create_topics([NewTopic(name, 1, 1)]) for name in ("a", "b")
    ]
    assert node.events.notifications == [("open", "a")]
    node.events.waiting.pop().callback(None)
    assert has_fired(waiting[0]) and node.events.notifications == [("open", "a"), ("open", "b")]
    node.events.waiting.pop().callback(None)
    assert has_fired(waiting[1])
