"""The replicas of a single node follow the committed metadata.

An image is published once the replicas have received the changes: it names a leader only when its partition accepts writes,
and no image holds a deleted topic when its files are removed.
"""

from __future__ import annotations

import logging
from typing import Protocol

from twisted.internet.defer import Deferred

from kafkacompat.metadata.difference import compare_images
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import NO_LEADER, ImageHolder, MetadataImage, TopicImage
from kafkacompat.timers import run_few_at_a_time

log = logging.getLogger(__name__)

TOPICS_AT_ONCE = 4
"""Topics whose partitions are opened or deleted at the same time."""


class PartitionEvents(Protocol):
    """The notifications that this broker's replicas receive. Each names a topic with all its partitions."""

    def open_partitions(self, topic: TopicImage) -> Deferred[None]:
        """Create or open the partitions that are not open; fires when they accept writes."""

    def delete_partitions(self, topic: TopicImage) -> Deferred[None]:
        """Delete a topic's partitions; fires when a topic of the same name may be created."""

    def configs_changed(self, topic: TopicImage) -> None:
        """Apply a topic's new configuration (`EffectiveConfig.log_config_of`)."""


class LocalReplicas:
    """Brings this node's replicas, its configuration and the published image up to a committed image."""

    def __init__(self, holder: ImageHolder, events: PartitionEvents, effective: EffectiveConfig) -> None:
        self._holder = holder
        self._events = events
        self._effective = effective
        self._known = MetadataImage()
        self._closed: set[tuple[bytes, int]] = set()

    async def apply(self, new: MetadataImage) -> None:
        """Send the replicas the changes since the last image that they know, and publish *new*."""
        old = self._known
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
        self._known = new
        self._publish(new)
        for topic in steps.reconfigured:
            self._events.configs_changed(topic)
        if new.configs != old.configs:
            self._effective.on_changed()

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

        return Deferred.fromCoroutine(open_topic())

    def _delete(self, topic: TopicImage) -> Deferred[None]:
        async def delete_topic() -> None:
            try:
                await self._events.delete_partitions(topic)
            except Exception:
                log.exception("Cannot delete the partitions of topic %s", topic.name)

        return Deferred.fromCoroutine(delete_topic())
