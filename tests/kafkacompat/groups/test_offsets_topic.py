"""Creating the offsets topic: once for all waiting requests, with Kafka's configuration."""

from __future__ import annotations

from random import Random

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.coordination.internal_topic import InternalTopic
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC, new_offsets_topic
from kafkacompat.metadata.controller import Controller
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import ImageHolder, TopicImage
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.memory_store import MemoryStore
from tests.fakes.partition_events import RecordingEvents
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal


class World:
    def __init__(self, **properties: str) -> None:
        given = {"node.id": "1", "offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "3"}
        config = BrokerConfig({**given, **{name.replace("_", "."): value for name, value in properties.items()}})
        self.store, self.events, self.metadata = MemoryStore(), RecordingEvents(), ImageHolder()
        self.controller = Controller(self.store, self.metadata, self.events, EffectiveConfig(config), config, Random(7))
        outcome(self.controller.load("cluster-1"))
        outcome(self.controller.start())
        self.topic = InternalTopic(
            new_offsets_topic(config), lambda wanted: self.controller.create_topics(wanted), self.metadata
        )
        self.asked = 0

    def count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """``asked`` counts the requests to the controller."""
        create_topics = self.controller.create_topics

        def counted(wanted: list[NewTopic]) -> Deferred[list[TopicImage | KafkaError]]:
            self.asked += 1
            return create_topics(wanted)

        monkeypatch.setattr(self.controller, "create_topics", counted)


def test_the_topic_is_made_as_configured() -> None:
    world = World(offsets_topic_segment_bytes="2097152")
    outcome(world.topic.ensure_exists())
    image = world.metadata.image
    assert len(image.topics[OFFSETS_TOPIC].partitions) == 3
    assert image.config(ResourceType.TOPIC, OFFSETS_TOPIC) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "2097152",
    }


def test_a_topic_that_is_there_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    outcome(world.topic.ensure_exists())
    world.count(monkeypatch)
    outcome(world.topic.ensure_exists())
    assert world.asked == 0


def test_concurrent_requests_share_the_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.count(monkeypatch)
    world.events.hold = True
    waiting = [world.topic.ensure_exists() for _ in range(3)]
    assert not any(has_fired(request) for request in waiting)
    assert world.asked == 1
    world.events.waiting[0].callback(None)
    assert [outcome(request) for request in waiting] == [None] * 3


def test_a_failed_creation_fails_all_waiters_and_is_retried() -> None:
    world = World(offsets_topic_replication_factor="3")
    assert refusal(world.topic.ensure_exists()) == ErrorCode.INVALID_REPLICATION_FACTOR
    world = World()
    world.events.hold = True
    held = world.controller.create_topics([NewTopic("slow", 1, 1)])
    waiting = [world.topic.ensure_exists() for _ in range(2)]
    world.store.failing = True
    world.events.waiting[0].callback(None)
    outcome(held)
    assert [refusal(request) for request in waiting] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    world.store.failing = world.events.hold = False
    outcome(world.topic.ensure_exists())
    assert OFFSETS_TOPIC in world.metadata.image.topics


def test_a_topic_created_by_another_broker_is_accepted() -> None:
    world = World()
    world.events.hold = True
    made = world.controller.create_topics([NewTopic(OFFSETS_TOPIC, 1, 1)])
    waiting = world.topic.ensure_exists()
    world.events.waiting[0].callback(None)
    outcome(made)
    assert outcome(waiting) is None
    assert len(world.metadata.image.topics[OFFSETS_TOPIC].partitions) == 1
