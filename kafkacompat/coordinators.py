"""The coordinators of one broker, connected with each other and with the topics that hold their state."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from twisted.internet.defer import Deferred, succeed

from kafkacompat.coordination.internal_topic import InternalTopic
from kafkacompat.coordination.partition_events import CoordinatorEvents, CoordinatorRoles, TopicRoles
from kafkacompat.coordination.replicated_log import ReplicatedLog
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC, new_offsets_topic
from kafkacompat.metadata.features import GROUP_VERSION, TRANSACTION_VERSION
from kafkacompat.metadata.instance_limits import find_no_instance
from kafkacompat.transactions.topic import TRANSACTION_TOPIC, new_transaction_topic

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.config.instances import Instance
    from kafkacompat.groups.coordinator import GroupCoordinator
    from kafkacompat.groups.stored_offsets import StoredOffsets
    from kafkacompat.metadata.administration import Administration
    from kafkacompat.metadata.effective import EffectiveConfig
    from kafkacompat.metadata.image import ImageHolder, TopicImage
    from kafkacompat.metadata.instance_limits import FindInstance
    from kafkacompat.metadata.local_replicas import PartitionEvents
    from kafkacompat.metadata.store import MetadataStore
    from kafkacompat.metadata.topic_changes import NewTopic
    from kafkacompat.partitions.replica_manager import ReplicaManager
    from kafkacompat.timers import Clock
    from kafkacompat.transactions.broker_queue import SendRequest
    from kafkacompat.transactions.completion import MarkerTransport
    from kafkacompat.transactions.coordinator import TransactionCoordinator
    from kafkacompat.transactions.markers import MarkerWriter
    from kafkacompat.transactions.verification import Verifier
    from kafkacompat.usage.topic import ReplicatedUsageTopic


class CoordinatorCluster(NamedTuple):
    """What coordinators need of the other brokers.

    ``is_deleted`` asks the cluster's metadata, not this broker's image, whether a partition (topic, index) is gone.
    """

    send: SendRequest
    is_deleted: Callable[[str, int], Deferred[bool]]


class Coordinators:
    """The coordinators ``groups`` and ``transactions``, and ``stored_offsets`` for version 0 of OffsetCommit.

    Each is imported and created at its first use: by a request, or when this broker leads a partition of its topic. A start on
    an empty directory imports none of them.

    ``roles`` is notified of the partitions that this broker leads. On a single node the controller sends its partition events to
    ``events``, which passes them on to the replicas and to ``roles``; in a cluster, which has other brokers in ``cluster``, the
    replicas notify ``roles`` themselves. The controller has to be set as ``controller`` before it starts: it creates the
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
        cluster: CoordinatorCluster | None = None,
    ) -> None:
        self._is_stopped = False
        self._clock = clock
        self._config = config
        self._replicas = replicas
        self._metadata = metadata
        self._effective = effective
        self._store = store
        self._rng = rng
        self._readable_by_old_kafka = readable_by_old_kafka
        self.features = {GROUP_VERSION: 1, TRANSACTION_VERSION: 0 if readable_by_old_kafka else 2}
        self._cluster = cluster
        self.find_group_instance: FindInstance = find_no_instance
        """Returns the instance of a group by its id."""
        self.roles = CoordinatorRoles(
            {
                OFFSETS_TOPIC: TopicRoles(
                    lambda partition: self.groups.on_election(partition.partition),
                    lambda index: self.groups.on_resignation(index),
                ),
                TRANSACTION_TOPIC: TopicRoles(
                    lambda partition: self.transactions.on_election(partition.partition, partition.leader_epoch),
                    lambda index: self.transactions.on_resignation(index),
                ),
            },
            self._forget_topic,
        )
        self.events: PartitionEvents = CoordinatorEvents(replicas, self.roles)

    @property
    def used_groups(self) -> GroupCoordinator | None:
        """The coordinator of groups, None before its first use."""
        return self.__dict__.get("groups")

    @property
    def used_transactions(self) -> TransactionCoordinator | None:
        """The coordinator of transactions, None before its first use."""
        return self.__dict__.get("transactions")

    def count_groups_of(self, instance: Instance) -> int:
        """Return how many groups of an instance this broker coordinates."""
        groups = self.used_groups
        return 0 if groups is None else groups.count_groups_of(instance)

    def open_usage_topic(self) -> ReplicatedUsageTopic:
        """Return the topic of instances' usage, which is created when the first record is written."""
        from kafkacompat.usage.topic import ReplicatedUsageTopic, new_usage_topic

        topic = new_usage_topic(self._config)
        return ReplicatedUsageTopic(
            self._config.node_id,
            self._internal_topic(topic),
            self._open_log(topic),
            self._metadata,
            None if self._cluster is None else self._cluster.send,
        )

    def _forget_topic(self, topic: TopicImage) -> None:
        self.groups.on_topics_deleted({topic.name: topic.topic_id})
        if self._cluster is None:
            self.stored_offsets.delete_offsets_of_topic(topic.name)

    @cached_property
    def groups(self) -> GroupCoordinator:
        """The coordinator of groups."""
        from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
        from kafkacompat.groups.coordinator import GroupCoordinator
        from kafkacompat.groups.settings import GroupSettings

        topic = new_offsets_topic(self._config)
        # Tools that read the topic beside a ZooKeeper know the records of that time.
        readable = self._readable_by_old_kafka or self._cluster is not None
        groups = GroupCoordinator(
            self._clock,
            GroupSettings.from_config(self._config, readable_by_old_kafka=readable),
            self._open_log(topic),
            self._internal_topic(topic).ensure_exists,
            self._rng.randbytes,
            metadata=self._metadata,
            consumer_settings=ConsumerGroupSettings.from_config(self._config, lambda: self._effective.config),
            find_instance=lambda group_id: self.find_group_instance(group_id),
        )
        groups.start()
        if self._is_stopped:
            groups.stop()
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
        markers = MarkerWriter(self._clock, self._replicas.find, self.groups.end_transaction)
        transactions = TransactionCoordinator(
            self._clock,
            TransactionSettings.from_config(self._config, transaction_version=level),
            self._open_log(topic),
            self._internal_topic(topic).ensure_exists,
            lambda: self.controller.producer_ids.next(),
            markers,
            self._build_transport(markers),
            self._is_deleted if self._cluster is None else self._cluster.is_deleted,
        )
        transactions.start()
        if self._is_stopped:
            transactions.stop()
        return transactions

    def _build_transport(self, markers: MarkerWriter) -> MarkerTransport:
        if self._cluster is None:
            return markers
        from kafkacompat.transactions.marker_sender import MarkerSender

        config = self._config
        timeout_ms = config.int("request.timeout.ms")
        return MarkerSender(config.node_id, self._metadata, markers, self._cluster.send, timeout_ms)

    def _is_deleted(self, topic: str, partition: int) -> Deferred[bool]:
        return succeed(self.controller.committed.partition(topic, partition) is None)

    @cached_property
    def verifier(self) -> Verifier:
        """The coordinators of all brokers, for partitions that verify transactions."""
        if self._cluster is None:
            return self.transactions
        from kafkacompat.transactions.verification import TransactionVerifier

        config = self._config
        timeout_ms = config.int("request.timeout.ms")
        return TransactionVerifier(
            config.node_id, self._metadata, lambda: self.transactions, self._cluster.send, timeout_ms
        )

    def _open_log(self, topic: NewTopic) -> ReplicatedLog:
        return ReplicatedLog(topic.name, self._replicas, self._metadata, self._clock, topic.partition_count)

    def _internal_topic(self, topic: NewTopic) -> InternalTopic:
        return InternalTopic(topic, lambda wanted: self.controller.create_topics(wanted), self._metadata)

    def stop(self) -> None:
        """Stop both coordinators: waiting requests are answered that the coordinator moved, later ones that it is not available."""
        self._is_stopped = True
        # A coordinator that was never used is not imported now.
        for coordinator in (self.used_transactions, self.used_groups):
            if coordinator is not None:
                coordinator.stop()
