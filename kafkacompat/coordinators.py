"""The coordinators of one broker, joined with the topics they keep what they know in."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.groups.coordinator import GroupCoordinator
from kafkacompat.groups.internal_topic import InternalTopic
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC, new_offsets_topic
from kafkacompat.groups.partition_events import GroupPartitionEvents
from kafkacompat.groups.replicated_log import ReplicatedLog
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.groups.stored_offsets import StoredOffsets
from kafkacompat.metadata.features import GROUP_VERSION
from kafkacompat.metadata.topic_changes import NewTopic

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.controller import Controller, PartitionEvents
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.metadata.store import MetadataStore
    from kafkacompat.replication.replica_manager import ReplicaManager
    from kafkacompat.timers import Clock


class Coordinators:
    """``groups`` and what it leaves to ``stored_offsets``; the controller is to tell ``events`` of partitions.

    ``controller`` is to be set before the first client is served: it makes the topics when they are needed.
    """

    controller: Controller

    def __init__(
        self,
        clock: Clock,
        config: BrokerConfig,
        replicas: ReplicaManager,
        metadata: ImageHolder,
        store: MetadataStore,
        rng: Random,
        *,
        readable_by_old_kafka: bool,
    ) -> None:
        self._metadata = metadata
        offsets_topic = new_offsets_topic(config)
        self.groups = GroupCoordinator(
            clock,
            GroupSettings.from_config(config, readable_by_old_kafka=readable_by_old_kafka),
            ReplicatedLog(OFFSETS_TOPIC, replicas, metadata, clock, offsets_topic.partition_count),
            self._made_when_needed(offsets_topic).ensure,
            rng.randbytes,
            metadata=metadata,
            consumer_settings=ConsumerGroupSettings.from_config(config, lambda: self.controller.config),
        )
        self.stored_offsets = StoredOffsets(store, config.int("offset.metadata.max.bytes"))
        self.events: PartitionEvents = GroupPartitionEvents(replicas, self.groups, self.stored_offsets)

    @property
    def features(self) -> dict[str, int]:
        """The levels that features are at."""
        return {GROUP_VERSION: 1}

    def _made_when_needed(self, topic: NewTopic) -> InternalTopic:
        return InternalTopic(topic, lambda wanted: self.controller.create_topics(wanted), self._metadata)

    def start(self) -> None:
        """Begin what is done from time to time."""
        self.groups.start()

    def stop(self) -> None:
        """Tell everybody who waits to look elsewhere."""
        self.groups.stop()
