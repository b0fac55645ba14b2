"""A node without replicas: its controller over a store in memory."""

from __future__ import annotations

from random import Random

from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.metadata.controller import Controller
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import ImageHolder, TopicImage
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.wire.errors import KafkaError
from tests.fakes.memory_store import MemoryStore
from tests.fakes.partition_events import RecordingEvents
from tests.kafkacompat.metadata.deferreds import outcome

CONFIG = BrokerConfig.load("node.id=1\nbroker.rack=r1\nadvertised.listeners=PLAINTEXT://kafka:9092")


class Node:
    """A node over *store*, started; made again over the same store it is the node after a restart."""

    def __init__(self, store: MemoryStore | None = None, *, cluster_id: str | None = None, seed: int = 1) -> None:
        self.store = store or MemoryStore()
        self.events = RecordingEvents()
        self.holder = ImageHolder()
        self.effective = EffectiveConfig(CONFIG)
        self.controller = Controller(self.store, self.holder, self.events, self.effective, CONFIG, Random(seed))
        self.cluster_id = outcome(self.controller.load(cluster_id))
        outcome(self.controller.start())

    def create(self, name: str, partitions: int = 1, **configs: str) -> TopicImage:
        wanted = NewTopic(name, partitions, 1, configs={key.replace("_", "."): text for key, text in configs.items()})
        (topic,) = outcome(self.controller.create_topics([wanted]))
        assert isinstance(topic, TopicImage)
        return topic

    def configure(self, resource: ResourceType, name: str, key: str, value: str) -> KafkaError | None:
        operation = ConfigOperation(key, ConfigOperationType.SET, value)
        (result,) = outcome(self.controller.alter_configs([ResourceChange(resource, name, [operation])]))
        return result
