"""How many partitions of each instance every broker leads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from kafkacompat.metadata.image import NO_LEADER
from kafkacompat.timers import Clock
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.metadata.image import MetadataImage, TopicImage
    from kafkacompat.tenancy.registry import Instances
    from kafkacompat.tenancy.tenant_view import TenantView

RECOUNT_S = 5.0
"""Least time between two counts: every change of an in-sync set is a new image."""


class LedPartitions:
    """The numbers of the last `count`. They weigh shares, so some seconds of delay do no harm."""

    def __init__(self, find_image: Callable[[], MetadataImage], instances: Instances, clock: Clock) -> None:
        self._find_image = find_image
        self._instances = instances
        self._clock = clock
        self._counted: tuple[Mapping[str, TopicImage], Mapping[str, TenantView]] | None = None
        self._counted_s = 0.0
        self._by_instance: dict[str, dict[int, int]] = {}

    def find(self, instance: str) -> Mapping[int, int]:
        """Return the number of an instance's partitions by the broker that leads them."""
        return self._by_instance.get(instance, {})

    def count(self) -> Iterator[None]:
        """Count again, with a step for each topic, if topics or instances have changed and the last count is old enough."""
        topics, views, now_s = self._find_image().topics, self._instances.by_name, self._clock.seconds()
        if self._counted is not None:
            is_same = topics is self._counted[0] and views is self._counted[1]
            if is_same or now_s - self._counted_s < RECOUNT_S:
                return
        self._counted, self._counted_s = (topics, views), now_s
        by_instance: dict[str, dict[int, int]] = {}
        for topic in list(topics.values()):
            owner = self._instances.find_owner(entities.TOPIC, topic.name)
            if owner is not None:
                counts = by_instance.setdefault(owner.name, {})
                for partition in topic.partitions:
                    if partition.leader != NO_LEADER:
                        counts[partition.leader] = counts.get(partition.leader, 0) + 1
            yield
        self._by_instance = by_instance
