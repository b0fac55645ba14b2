"""The coordinators of one broker, connected with each other and with the topics that hold their state."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING

from kafkacompat.coordination.internal_topic import InternalTopic
from kafkacompat.coordination.partition_events import CoordinatorEvents
from kafkacompat.coordination.replicated_log import ReplicatedLog
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC, new_offsets_topic
from kafkacompat.metadata.features import GROUP_VERSION, TRANSACTION_VERSION
from kafkacompat.transactions.topic import TRANSACTION_TOPIC, new_transaction_topic

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.groups.coordinator import GroupCoordinator
    from kafkacompat.groups.stored_offsets import StoredOffsets
    from kafkacompat.metadata.administration import Administration
    from kafkacompat.metadata.effective import EffectiveConfig
    from kafkacompat.metadata.image import ImageHolder, TopicImage
    from kafkacompat.metadata.local_replicas import PartitionEvents
    from kafkacompat.metadata.store import MetadataStore
    from kafkacompat.metadata.topic_changes import NewTopic
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.timers import Clock
    from kafkacompat.transactions.coordinator import TransactionCoordinator


class Coordinators:
    """The coordinators ``groups`` and ``transactions``, and ``stored_offsets`` for version 0 of OffsetCommit.

    Each is imported and created at its first use: by a request, or when this broker leads a partition of its topic. A start on
    an empty directory imports none of them.

    The controller sends its partition events to ``events``. It has to be set as ``controller`` before it starts: it creates the
    coordinators' topics. ``features`` holds the level of each feature.
    """

    controller: Administration

    def __init__(
        self,
        clock: Clock,
        config: BrokerConfig,
        replicas: ReplicaManager,
        metadata: ImageHolder,
        effective: EffectiveConfig,
        store: MetadataStore,
        rng: Random,
        *,
        readable_by_old_kafka: bool,
    ) -> None:
        self._clock = clock
        self._config = config
        self._replicas = replicas
        self._metadata = metadata
        self._effective = effective
        self._store = store
        self._rng = rng
        self._readable_by_old_kafka = readable_by_old_kafka
        self.features = {GROUP_VERSION: 1, TRANSACTION_VERSION: 0 if readable_by_old_kafka else 2}
        self.events: PartitionEvents = CoordinatorEvents(
            group_partition_events(replicas, lambda: self.groups, lambda: self.stored_offsets),
            TRANSACTION_TOPIC,
            lambda partition: self.transactions.on_election(partition.partition, partition.leader_epoch),
            lambda number: self.transactions.on_resignation(number),
        )

    @cached_property
    def groups(self) -> GroupCoordinator:
        """The coordinator of groups."""
        from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
        from kafkacompat.groups.coordinator import GroupCoordinator
        from kafkacompat.groups.settings import GroupSettings

        topic = new_offsets_topic(self._config)
        groups = GroupCoordinator(
            self._clock,
            GroupSettings.from_config(self._config, readable_by_old_kafka=self._readable_by_old_kafka),
            self._open_log(topic),
            self._internal_topic(topic).ensure_exists,
            self._rng.randbytes,
            metadata=self._metadata,
            consumer_settings=ConsumerGroupSettings.from_config(self._config, lambda: self._effective.config),
        )
        groups.start()
        return groups

    @cached_property
    def stored_offsets(self) -> StoredOffsets:
        """The offsets that version 0 of OffsetCommit has committed."""
        from kafkacompat.groups.stored_offsets import StoredOffsets

        return StoredOffsets(self._store, self._config.int("offset.metadata.max.bytes"))

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        """The coordinator of transactions."""
        from kafkacompat.transactions.coordinator import TransactionCoordinator
        from kafkacompat.transactions.markers import MarkerWriter
        from kafkacompat.transactions.settings import TransactionSettings

        topic, level = new_transaction_topic(self._config), self.features[TRANSACTION_VERSION]
        transactions = TransactionCoordinator(
            self._clock,
            TransactionSettings.from_config(self._config, transaction_version=level),
            self._open_log(topic),
            self._internal_topic(topic).ensure_exists,
            lambda: self.controller.producer_ids.next(),
            MarkerWriter(self._clock, self._replicas.find, self.groups.end_transaction),
            lambda topic, partition: self.controller.committed.partition(topic, partition) is None,
        )
        transactions.start()
        return transactions

    def _open_log(self, topic: NewTopic) -> ReplicatedLog:
        return ReplicatedLog(topic.name, self._replicas, self._metadata, self._clock, topic.partition_count)

    def _internal_topic(self, topic: NewTopic) -> InternalTopic:
        return InternalTopic(topic, lambda wanted: self.controller.create_topics(wanted), self._metadata)

    def stop(self) -> None:
        """Stop both coordinators: waiting requests are answered that the coordinator moved, later ones that it is not available."""
        self.transactions.stop()
        self.groups.stop()


def group_partition_events(
    next_receiver: PartitionEvents,
    coordinator: Callable[[], GroupCoordinator],
    stored_offsets: Callable[[], StoredOffsets],
) -> CoordinatorEvents:
    """Return the events of the group coordinator, which also forgets the offsets of every other topic that is deleted.

    *coordinator* and *stored_offsets* return the objects that receive the events; neither is called before the first event.
    """

    def forget(topic: TopicImage) -> None:
        coordinator().on_topics_deleted({topic.name: topic.topic_id})
        stored_offsets().delete_offsets_of_topic(topic.name)

    return CoordinatorEvents(
        next_receiver,
        OFFSETS_TOPIC,
        lambda partition: coordinator().on_election(partition.partition),
        lambda number: coordinator().on_resignation(number),
        forget,
    )
