"""The controller of a single node changes its metadata: it plans, commits to the store, notifies the replicas and publishes.

It makes one change at a time. It plans a change on a draft of the committed image and commits it by compare-and-set; after a
conflict it reloads the store and plans again. Then the replicas receive the changes, and the new image is published.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.config import BrokerConfig
from kafkacompat.metadata.changes import MAX_TOPICS_NAMED, MetadataChanges
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import BrokerImage, ImageHolder, MetadataImage, PartitionImage
from kafkacompat.metadata.inheritance import Inheritance, list_unconfigured_topics
from kafkacompat.metadata.ledger import MetadataLedger
from kafkacompat.metadata.local_replicas import LocalReplicas, PartitionEvents
from kafkacompat.metadata.producer_ids import ProducerIds
from kafkacompat.metadata.store import MetadataStore, StoreError
from kafkacompat.metadata.topic_changes import elect_leader, elect_leaders
from kafkacompat.wire.primitives import format_uuid, new_uuid

log = logging.getLogger(__name__)

Inherit: TypeAlias = "Callable[[], Coroutine[Deferred[Any], Any, Inheritance]]"


class Controller:
    """The controller of a single node, over any `MetadataStore`.

    Call `load`, then `start`, then the methods of its `MetadataChanges`. ``producer_ids`` allocates producer ids.
    """

    def __init__(
        self,
        store: MetadataStore,
        holder: ImageHolder,
        events: PartitionEvents,
        effective: EffectiveConfig,
        config: BrokerConfig,
        rng: Random,
    ) -> None:
        self._ledger = ledger = MetadataLedger(store, self._with_this_broker)
        self._static_config = config
        self._rng = rng
        self._lock = DeferredLock()
        self._replicas = LocalReplicas(holder, events, effective)
        changes = MetadataChanges(ledger, self._replicas.apply, self._lock, config, effective, rng)
        self.create_topics = changes.create_topics
        self.delete_topics = changes.delete_topics
        self.create_partitions = changes.create_partitions
        self.alter_configs = changes.alter_configs
        self.alter_client_quotas = changes.alter_client_quotas
        self.alter_scram_credentials = changes.alter_scram_credentials
        self.change_tokens = changes.change_tokens
        self.create_acls = changes.create_acls
        self.delete_acls = changes.delete_acls
        self.producer_ids = ProducerIds(lambda: Deferred.fromCoroutine(ledger.allocate_producer_ids(config.node_id)))

    @property
    def committed(self) -> MetadataImage:
        """The image that the store holds; the replicas may not have received it yet."""
        return self._ledger.image

    def load(self, cluster_id: str | None, inherit: Inherit | None = None) -> Deferred[str]:
        """Read the store; fires with the cluster's id, which is new if neither the store nor the caller has one.

        A new store begins with the inheritance that *inherit* returns, by default an empty one. Fails with StoreError when
        the store belongs to another cluster than *cluster_id*.
        """
        return Deferred.fromCoroutine(self._load(cluster_id, inherit))

    async def _load(self, cluster_id: str | None, inherit: Inherit | None) -> str:
        await self._ledger.load()
        stored = self._ledger.image.cluster_id
        if stored and cluster_id and stored != cluster_id:
            reason = f"the metadata belongs to the cluster {stored} and the log directories to {cluster_id}"
            raise StoreError(f"{reason}; start with directories of one cluster")
        if not stored:
            stored = cluster_id or format_uuid(new_uuid(self._rng))
            nothing = Inheritance(self._static_config, (), None, self._rng)
            inheritance = nothing if inherit is None else await inherit()
            await self._ledger.initialize_store(stored, inheritance, self._static_config.node_id)
        return stored

    def _with_this_broker(self, image: MetadataImage) -> MetadataImage:
        node_id = self._static_config.node_id
        rack = self._static_config.optional_string("broker.rack")
        broker = BrokerImage(node_id, rack, self._static_config.advertised_listeners)
        return replace(image, controller_id=node_id, brokers={node_id: broker})

    def start(self) -> Deferred[None]:
        """Lead every partition of this node under a new epoch, open them all and publish the first image."""
        return self._lock.run(lambda: Deferred.fromCoroutine(self._start()))

    async def _start(self) -> None:
        await self._ledger.commit(lambda draft: elect_leaders(draft, self._static_config.node_id))
        if topics := list_unconfigured_topics(self._ledger.image):
            advice = "to have them cleaned, alter cleanup.policy, retention.ms or retention.bytes"
            names = ", ".join(topics[:MAX_TOPICS_NAMED]) + (" ..." if len(topics) > MAX_TOPICS_NAMED else "")
            log.warning("Keeping all records of %d topics with unknown configs: %s; %s", len(topics), names, advice)
        await self._replicas.apply(self._ledger.image)

    def begin_leader_epoch(self, topic: str, index: int) -> Deferred[PartitionImage]:
        """Let clients know that this node leads a partition under a new epoch, as after a start; fires with the partition.

        The caller gives the replica that epoch. Fails with KafkaError UNKNOWN_TOPIC_OR_PARTITION or KAFKA_STORAGE_ERROR.
        """
        return self._lock.run(lambda: Deferred.fromCoroutine(self._begin_leader_epoch(topic, index)))

    async def _begin_leader_epoch(self, topic: str, index: int) -> PartitionImage:
        elected = await self._ledger.commit(
            lambda draft: elect_leader(draft, topic, index, self._static_config.node_id)
        )
        await self._replicas.apply(self._ledger.image)
        return elected
