"""The coordinators of one broker, joined with each other and with the topics that they keep what they know in."""

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
    from kafkacompat.metadata.controller import Controller, PartitionEvents
    from kafkacompat.metadata.image import ImageHolder, TopicImage
    from kafkacompat.metadata.store import MetadataStore
    from kafkacompat.metadata.topic_changes import NewTopic
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.timers import Clock
    from kafkacompat.transactions.coordinator import TransactionCoordinator


class Coordinators:
    """``groups`` and what it leaves to ``stored_offsets``, and ``transactions``.

    Each is imported, made and at work from when it is first asked for: by a request, or because a partition of its topic is
    led. A start over an empty folder waits for none of them.

    The controller is to tell ``events`` of partitions, and to be set as ``controller`` before it starts: it makes the topics
    when they are needed, and knows which there are. ``features`` are the levels that features are at.
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
        self._clock = clock
        self._config = config
        self._replicas = replicas
        self._metadata = metadata
        self._store = store
        self._rng = rng
        self._readable_by_old_kafka = readable_by_old_kafka
        self.features = {GROUP_VERSION: 1, TRANSACTION_VERSION: 0 if readable_by_old_kafka else 2}
        self.events: PartitionEvents = CoordinatorEvents(
            group_partition_events(replicas, lambda: self.groups, lambda: self.stored_offsets),
            TRANSACTION_TOPIC,
            lambda each: self.transactions.on_election(each.partition, each.leader_epoch),
            lambda partition: self.transactions.on_resignation(partition),
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
            self._log_in(topic),
            self._made_when_needed(topic).ensure,
            self._rng.randbytes,
            metadata=self._metadata,
            consumer_settings=ConsumerGroupSettings.from_config(self._config, lambda: self.controller.config),
        )
        groups.start()
        return groups

    @cached_property
    def stored_offsets(self) -> StoredOffsets:
        """What `OffsetCommit` 0 has committed."""
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
            self._log_in(topic),
            self._made_when_needed(topic).ensure,
            lambda: self.controller.producer_ids.next(),
            MarkerWriter(self._clock, self._replicas.find, self.groups.end_transaction),
            lambda topic, partition: self.controller.committed.partition(topic, partition) is None,
        )
        transactions.start()
        return transactions

    def _log_in(self, topic: NewTopic) -> ReplicatedLog:
        return ReplicatedLog(topic.name, self._replicas, self._metadata, self._clock, topic.partition_count)

    def _made_when_needed(self, topic: NewTopic) -> InternalTopic:
        return InternalTopic(topic, lambda wanted: self.controller.create_topics(wanted), self._metadata)

    def stop(self) -> None:
        """Tell everybody who waits to look elsewhere; who asks first from now on finds them stopped."""
        self.transactions.stop()
        self.groups.stop()


def group_partition_events(
    behind: PartitionEvents, coordinator: Callable[[], GroupCoordinator], stored_offsets: Callable[[], StoredOffsets]
) -> CoordinatorEvents:
    """Return the events of the group coordinator, which also forgets the offsets of every other topic that is deleted.

    *coordinator* and *stored_offsets* return the objects that receive the events; neither is called before the first event.
    """

    def forget(topic: TopicImage) -> None:
        coordinator().on_topics_deleted({topic.name: topic.topic_id})
        stored_offsets().topic_deleted(topic.name)

    return CoordinatorEvents(
        behind,
        OFFSETS_TOPIC,
        lambda partition: coordinator().on_election(partition.partition),
        lambda number: coordinator().on_resignation(number),
        forget,
    )
