"""The coordinators of one broker, joined with each other and with the topics that they keep what they know in."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.groups.coordinator import GroupCoordinator
from kafkacompat.groups.internal_topic import InternalTopic
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC, new_offsets_topic
from kafkacompat.groups.partition_events import CoordinatorEvents, GroupPartitionEvents
from kafkacompat.groups.replicated_log import ReplicatedLog
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.groups.stored_offsets import StoredOffsets
from kafkacompat.metadata.features import GROUP_VERSION, TRANSACTION_VERSION
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.transactions.coordinator import TransactionCoordinator
from kafkacompat.transactions.markers import MarkerWriter
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.topic import TRANSACTION_TOPIC, new_transaction_topic

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.controller import Controller, PartitionEvents
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.metadata.store import MetadataStore
    from kafkacompat.replication.replica_manager import ReplicaManager
    from kafkacompat.timers import Clock


class Coordinators:
    """``groups`` and what it leaves to ``stored_offsets``, and ``transactions``.

    The controller is to tell ``events`` of partitions, and to be set as ``controller`` before it starts: it makes the topics
    when they are needed, and knows which there are.
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
        self.transactions = self._transaction_coordinator(clock, config, replicas, readable_by_old_kafka)
        self.events: PartitionEvents = CoordinatorEvents(
            GroupPartitionEvents(replicas, self.groups, self.stored_offsets),
            TRANSACTION_TOPIC,
            lambda each: self.transactions.on_election(each.partition, each.leader_epoch),
            self.transactions.on_resignation,
        )

    def _transaction_coordinator(
        self, clock: Clock, config: BrokerConfig, replicas: ReplicaManager, readable_by_old_kafka: bool
    ) -> TransactionCoordinator:
        topic = new_transaction_topic(config)
        return TransactionCoordinator(
            clock,
            TransactionSettings.from_config(config, transaction_version=0 if readable_by_old_kafka else 2),
            ReplicatedLog(TRANSACTION_TOPIC, replicas, self._metadata, clock, topic.partition_count),
            self._made_when_needed(topic).ensure,
            lambda: self.controller.producer_ids.next(),
            MarkerWriter(clock, replicas.find, self.groups.end_transaction),
            lambda topic, partition: self.controller.committed.partition(topic, partition) is None,
        )

    @property
    def features(self) -> dict[str, int]:
        """The levels that features are at."""
        return {GROUP_VERSION: 1, TRANSACTION_VERSION: self.transactions.settings.transaction_version}

    def _made_when_needed(self, topic: NewTopic) -> InternalTopic:
        return InternalTopic(topic, lambda wanted: self.controller.create_topics(wanted), self._metadata)

    def start(self) -> None:
        """Begin what is done from time to time."""
        self.groups.start()
        self.transactions.start()

    def stop(self) -> None:
        """Tell everybody who waits to look elsewhere."""
        self.transactions.stop()
        self.groups.stop()
