"""The controller changes the cluster's metadata: it plans, commits to the store, notifies the replicas and publishes.

It makes one change at a time. It plans a change on a draft of the committed image and commits it by compare-and-set; after a
conflict it reloads the store and plans again. Then it sends the replicas the difference to the last image that they know, and
publishes the new image. So an image names a leader only when its partition accepts writes, and no image holds a deleted topic
when its files are removed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from random import Random
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import Entity
from kafkacompat.metadata.config_changes import ResourceChange, alter_configs
from kafkacompat.metadata.difference import compare_images
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import NO_LEADER, BrokerImage, ImageHolder, MetadataImage, TopicImage
from kafkacompat.metadata.inheritance import Inheritance, list_unconfigured_topics
from kafkacompat.metadata.ledger import MetadataLedger
from kafkacompat.metadata.producer_ids import ProducerIds
from kafkacompat.metadata.quota_changes import QuotaAlteration, alter_client_quotas
from kafkacompat.metadata.scram_changes import ScramChange, alter_scram_credentials
from kafkacompat.metadata.store import MetadataStore, StoreError
from kafkacompat.metadata.topic_changes import (
    NewPartitions,
    NewTopic,
    TopicPlanner,
    delete_topic,
    elect_leaders,
    new_topic_id,
)
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.timers import run_few_at_a_time
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.primitives import format_uuid

log = logging.getLogger(__name__)

MAX_TOPICS_NAMED = 100
"""Most topics that one log line names."""

TOPICS_AT_ONCE = 4
"""Topics whose partitions are opened or deleted at the same time."""

Result = TypeVar("Result")
Item = TypeVar("Item")
Arguments = ParamSpec("Arguments")
Outcome: TypeAlias = "KafkaError | None"
Inherit: TypeAlias = "Callable[[], Coroutine[Deferred[Any], Any, Inheritance]]"


class PartitionEvents(Protocol):
    """The notifications that this broker's replicas receive. Each names a topic with all its partitions."""

    def open_partitions(self, topic: TopicImage) -> Deferred[None]:
        """Create or open the partitions that are not open; fires when they accept writes."""

    def delete_partitions(self, topic: TopicImage) -> Deferred[None]:
        """Delete a topic's partitions; fires when a topic of the same name may be created."""

    def configs_changed(self, topic: TopicImage) -> None:
        """Apply a topic's new configuration (`Controller.log_config_of`)."""


class Controller:
    """The controller of a single node, over any `MetadataStore`.

    Call `load`, then `start`, then the other methods. These fail with KafkaError; KAFKA_STORAGE_ERROR is a failure of the
    store. ``producer_ids`` allocates producer ids. The controller calls ``on_config_changed`` when ``config`` may have changed.
    """

    def __init__(
        self, store: MetadataStore, holder: ImageHolder, events: PartitionEvents, config: BrokerConfig, rng: Random
    ) -> None:
        self.producer_ids = ProducerIds(lambda: _as_deferred(self._ledger.allocate_producer_ids(config.node_id)))
        self._ledger = MetadataLedger(store, self._with_this_broker)
        self._holder = holder
        self._events = events
        self._static_config = config
        self._rng = rng
        self._lock = DeferredLock()
        self._known_to_replicas = MetadataImage()
        self._closed: set[tuple[bytes, int]] = set()
        self._effective = EffectiveConfig(config)
        self.on_config_changed: Callable[[], None] = lambda: None

    @property
    def config(self) -> BrokerConfig:
        """The broker's configuration with the changes made while it runs."""
        return self._effective.config

    @property
    def committed(self) -> MetadataImage:
        """The image that the store holds; the replicas may not have received it yet."""
        return self._ledger.image

    def log_config_of(self, topic: str) -> LogConfig:
        """Build the configuration of a topic's log, also for a topic that is not published yet."""
        return self._effective.log_config(self._ledger.image.config(ResourceType.TOPIC, topic))

    # Start

    def load(self, cluster_id: str | None, inherit: Inherit | None = None) -> Deferred[str]:
        """Read the store; fires with the cluster's id, which is new if neither the store nor the caller has one.

        A new store begins with the inheritance that *inherit* returns, by default an empty one. Fails with StoreError when
        the store belongs to another cluster than *cluster_id*.
        """
        return _as_deferred(self._load(cluster_id, inherit))

    async def _load(self, cluster_id: str | None, inherit: Inherit | None) -> str:
        await self._ledger.load()
        stored = self._ledger.image.cluster_id
        if stored and cluster_id and stored != cluster_id:
            reason = f"the metadata belongs to the cluster {stored} and the log directories to {cluster_id}"
            raise StoreError(f"{reason}; start with directories of one cluster")
        if not stored:
            stored = cluster_id or format_uuid(new_topic_id(self._rng))
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
        return self._lock.run(_as_deferred_function(self._start))

    async def _start(self) -> None:
        await self._ledger.commit(lambda draft: elect_leaders(draft, self._static_config.node_id))
        if topics := list_unconfigured_topics(self._ledger.image):
            advice = "to have them cleaned, alter cleanup.policy, retention.ms or retention.bytes"
            names = ", ".join(topics[:MAX_TOPICS_NAMED]) + (" ..." if len(topics) > MAX_TOPICS_NAMED else "")
            log.warning("Keeping all records of %d topics with unknown configs: %s; %s", len(topics), names, advice)
        await self._notify_replicas()

    # Changes

    def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Deferred[list[TopicImage | KafkaError]]:
        """Create topics; fires with each topic's image or error when their leaders accept writes."""

        def plan(draft: MetadataDraft) -> list[TopicImage | KafkaError]:
            changes = TopicPlanner(self.config, self._rng)
            changes.check_size(wanted)
            return [_change_or_error(changes.create_topic, draft, topic) for topic in wanted]

        creating = self._make_change(plan, validate_only)
        return creating if validate_only else creating.addCallback(_log_created)

    def delete_topics(self, topic_ids: Sequence[bytes]) -> Deferred[list[Outcome]]:
        """Delete topics; fires with None or an error for each, when topics of their names may be created."""
        return self._make_change(lambda draft: _change_each(topic_ids, lambda uuid: delete_topic(draft, uuid)), False)

    def create_partitions(
        self, wanted: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Deferred[list[Outcome]]:
        """Add partitions to topics; fires with None or an error for each, when the new partitions accept writes."""

        def plan(draft: MetadataDraft) -> list[Outcome]:
            changes = TopicPlanner(self.config, self._rng)
            return _change_each(wanted, lambda more: changes.add_partitions(draft, more))

        return self._make_change(plan, validate_only)

    def alter_configs(
        self, wanted: Sequence[ResourceChange], *, validate_only: bool = False
    ) -> Deferred[list[Outcome]]:
        """Change the configurations of resources; fires with None or an error for each."""

        def plan(draft: MetadataDraft) -> list[Outcome]:
            return _change_each(wanted, lambda change: alter_configs(draft, self._static_config, change))

        return self._make_change(plan, validate_only)

    def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> Deferred[dict[Entity, Outcome]]:
        """Change the quotas of clients; fires with None or an error for each entity."""
        return self._make_change(lambda draft: alter_client_quotas(draft, alterations), validate_only)

    def alter_scram_credentials(self, changes: Sequence[ScramChange]) -> Deferred[dict[str, Outcome]]:
        """Change the SCRAM credentials of users; fires with None or an error for each user."""
        return self._make_change(lambda draft: alter_scram_credentials(draft, changes), False)

    def _make_change(self, plan: Callable[[MetadataDraft], Result], validate_only: bool) -> Deferred[Result]:
        async def change() -> Result:
            if validate_only:
                return plan(MetadataDraft(self._ledger.image))
            result = await self._ledger.commit(plan)
            await self._notify_replicas()
            return result

        return self._lock.run(_as_deferred_function(change))

    # Replicas

    async def _notify_replicas(self) -> None:
        """Send the replicas the changes since the last image that they know, and publish."""
        old, new = self._known_to_replicas, self._ledger.image
        if new.configs != old.configs:
            self._effective.update(new.configs)
        steps = compare_images(old, new)
        if steps.deleted:
            opening = {topic.topic_id for topic in steps.opened}
            open_now = (
                old.topics_by_id.get(uuid) if uuid in opening else topic for uuid, topic in new.topics_by_id.items()
            )
            self._publish(new.with_topics({topic.name: topic for topic in open_now if topic is not None}))
            await run_few_at_a_time(self._delete, steps.deleted, TOPICS_AT_ONCE)
        known = old.topics_by_id
        await run_few_at_a_time(
            lambda topic: self._open(topic, known.get(topic.topic_id)), steps.opened, TOPICS_AT_ONCE
        )
        self._known_to_replicas = new
        self._publish(new)
        for topic in steps.reconfigured:
            self._events.configs_changed(topic)
        if new.configs != old.configs:
            self.on_config_changed()

    def _publish(self, image: MetadataImage) -> None:
        """Publish an image without leaders for the partitions that could not be opened."""
        names = {image.topics_by_id[uuid].name for uuid, _ in self._closed if uuid in image.topics_by_id}
        masked = {name: self._without_leaders(image.topics[name]) for name in names}
        self._holder.publish(image.with_topics({**image.topics, **masked}) if masked else image)

    def _without_leaders(self, topic: TopicImage) -> TopicImage:
        partitions = (
            partition._replace(leader=NO_LEADER) if (topic.topic_id, partition.partition) in self._closed else partition
            for partition in topic.partitions
        )
        return topic._replace(partitions=tuple(partitions))

    def _open(self, topic: TopicImage, known: TopicImage | None) -> Deferred[None]:
        """Open a topic's new partitions; partitions that cannot be opened have no leader until the next start."""

        async def open_topic() -> None:
            try:
                await self._events.open_partitions(topic)
            except Exception:
                log.exception("Cannot open the partitions of topic %s", topic.name)
                count = 0 if known is None else len(known.partitions)
                self._closed |= {(topic.topic_id, partition.partition) for partition in topic.partitions[count:]}

        return _as_deferred(open_topic())

    def _delete(self, topic: TopicImage) -> Deferred[None]:
        async def delete_topic() -> None:
            try:
                await self._events.delete_partitions(topic)
            except Exception:
                log.exception("Cannot delete the partitions of topic %s", topic.name)

        return _as_deferred(delete_topic())


def _log_created(results: list[TopicImage | KafkaError]) -> list[TopicImage | KafkaError]:
    """Log one line for all topics of a request."""
    created = [topic for topic in results if isinstance(topic, TopicImage)]
    if len(created) == 1:
        log.info("Created topic %s: %s", created[0].name, _count_partitions(created[0]))
    elif created:
        named = ", ".join(f"{topic.name} ({_count_partitions(topic)})" for topic in created[:MAX_TOPICS_NAMED])
        log.info("Created %d topics: %s%s", len(created), named, ", ..." if len(created) > MAX_TOPICS_NAMED else "")
    return results


def _count_partitions(topic: TopicImage) -> str:
    return "1 partition" if len(topic.partitions) == 1 else f"{len(topic.partitions)} partitions"


def _as_deferred(coroutine: Coroutine[Deferred[Any], Any, Result]) -> Deferred[Result]:
    return Deferred.fromCoroutine(coroutine)


def _as_deferred_function(
    function: Callable[[], Coroutine[Deferred[Any], Any, Result]],
) -> Callable[[], Deferred[Result]]:
    return lambda: Deferred.fromCoroutine(function())


def _change_each(items: Sequence[Item], change: Callable[[Item], None]) -> list[Outcome]:
    """Make one change for each item; a failure leaves the other items alone."""
    return [_change_or_error(change, item) for item in items]


def _change_or_error(
    change: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result | KafkaError:
    try:
        return change(*args, **kwargs)
    except KafkaError as problem:
        # The traceback refers to every frame on the way: the response that holds the error would wait for the garbage collector.
        return problem.with_traceback(None)
