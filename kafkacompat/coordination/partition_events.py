"""A coordinator follows the partitions of its topic by the controller's events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.metadata.image import PartitionImage, TopicImage
    from kafkacompat.metadata.local_replicas import PartitionEvents


class CoordinatorEvents:
    """Implements `PartitionEvents` and passes each event on to the ``next_receiver``.

    The coordinator leads exactly the partitions of its *topic* that exist, however the topic is created, grows or is deleted.
    ``lead`` is called for each partition that is open, ``resign`` for each that is deleted. The event does not wait until the
    partition is loaded; until then the coordinator answers COORDINATOR_LOAD_IN_PROGRESS. A new partition has nothing to load.
    ``forget`` is called for every other topic that is deleted.
    """

    def __init__(
        self,
        next_receiver: PartitionEvents,
        topic: str,
        lead: Callable[[PartitionImage], object],
        resign: Callable[[int], object],
        forget: Callable[[TopicImage], object] = lambda topic: None,
    ) -> None:
        self._next_receiver = next_receiver
        self._topic = topic
        self._lead = lead
        self._resign = resign
        self._forget = forget

    def open_partitions(self, topic: TopicImage) -> Deferred[None]:
        """See PartitionEvents."""
        opened = self._next_receiver.open_partitions(topic)
        return opened.addCallback(lambda _: self._lead_all(topic)) if topic.name == self._topic else opened

    def _lead_all(self, topic: TopicImage) -> None:
        for partition in topic.partitions:
            self._lead(partition)

    def delete_partitions(self, topic: TopicImage) -> Deferred[None]:
        """See PartitionEvents."""
        if topic.name == self._topic:
            for partition in topic.partitions:
                self._resign(partition.partition)
        else:
            self._forget(topic)
        return self._next_receiver.delete_partitions(topic)

    def configs_changed(self, topic: TopicImage) -> None:
        """See PartitionEvents."""
        self._next_receiver.configs_changed(topic)
