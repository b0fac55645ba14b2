"""Coordinators hear of partitions where the replicas do: from the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.groups.coordinator import GroupCoordinator
    from kafkacompat.groups.stored_offsets import StoredOffsets
    from kafkacompat.metadata.controller import PartitionEvents
    from kafkacompat.metadata.image import PartitionImage, TopicImage


class CoordinatorEvents:
    """Fits `PartitionEvents`, in front of others that do (*behind*).

    However a coordinator's *topic* comes to be, grows or goes, the coordinator leads just the partitions that there are:
    it is told to ``lead`` each that is open and to ``resign`` each that goes. Loading is not waited for: until it is over,
    requests are answered COORDINATOR_LOAD_IN_PROGRESS, and a new partition has nothing to load.
    """

    def __init__(
        self,
        behind: PartitionEvents,
        topic: str,
        lead: Callable[[PartitionImage], object],
        resign: Callable[[int], object],
    ) -> None:
        self._behind = behind
        self._topic = topic
        self._lead = lead
        self._resign = resign

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
        return self._behind.delete_partitions(topic)

    def configs_changed(self, topic: TopicImage) -> None:
        """See PartitionEvents."""
        self._behind.configs_changed(topic)


class GroupPartitionEvents(CoordinatorEvents):
    """Those of the group coordinator: whatever other topic is deleted, its offsets are.

    ``coordinator`` and ``stored_offsets`` give them, and are not asked before there is something to tell.
    """

    def __init__(
        self,
        behind: PartitionEvents,
        coordinator: Callable[[], GroupCoordinator],
        stored_offsets: Callable[[], StoredOffsets],
    ) -> None:
        super().__init__(
            behind,
            OFFSETS_TOPIC,
            lambda each: coordinator().on_election(each.partition),
            lambda partition: coordinator().on_resignation(partition),
        )
        self._coordinator = coordinator
        self._stored_offsets = stored_offsets

    def delete_partitions(self, topic: TopicImage) -> Deferred[None]:
        """See PartitionEvents."""
        if topic.name != OFFSETS_TOPIC:
            self._coordinator().on_topics_deleted({topic.name: topic.topic_id})
            self._stored_offsets().topic_deleted(topic.name)
        return super().delete_partitions(topic)
