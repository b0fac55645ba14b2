"""Coordinators hear of partitions where the replicas do: from the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.metadata.controller import PartitionEvents
    from kafkacompat.metadata.image import PartitionImage, TopicImage


class CoordinatorEvents:
    """Fits `PartitionEvents`, in front of others that do (*behind*).

    However a coordinator's *topic* comes to be, grows or goes, the coordinator leads just the partitions that there are:
    it is told to ``lead`` each that is open and to ``resign`` each that goes. Loading is not waited for: until it is over,
    requests are answered COORDINATOR_LOAD_IN_PROGRESS, and a new partition has nothing to load. ``forget`` is told of every
    other topic that is deleted.
    """

    def __init__(
        self,
        behind: PartitionEvents,
        topic: str,
        lead: Callable[[PartitionImage], object],
        resign: Callable[[int], object],
        forget: Callable[[TopicImage], object] = lambda topic: None,
    ) -> None:
        self._behind = behind
        self._topic = topic
        self._lead = lead
        self._resign = resign
        self._forget = forget

    def open_partitions(self, topic: TopicImage) -> Deferred[None]:
        """See PartitionEvents."""
        opened = self._behind.open_partitions(topic)
        return opened.addCallback(lambda _: self._lead_all(topic)) if topic.name == self._topic else opened

    def _lead_all(self, topic: TopicImage) -> None:
        for each in topic.partitions:
            self._lead(each)

    def delete_partitions(self, topic: TopicImage) -> Deferred[None]:
        """See PartitionEvents."""
        if topic.name == self._topic:
            for each in topic.partitions:
                self._resign(each.partition)
        else:
            self._forget(topic)
        return self._behind.delete_partitions(topic)

    def configs_changed(self, topic: TopicImage) -> None:
        """See PartitionEvents."""
        self._behind.configs_changed(topic)
