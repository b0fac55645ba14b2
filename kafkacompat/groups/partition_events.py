"""The group coordinator hears of partitions where the replicas do: from the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.groups.coordinator import GroupCoordinator
    from kafkacompat.groups.stored_offsets import StoredOffsets
    from kafkacompat.metadata.controller import PartitionEvents
    from kafkacompat.metadata.image import TopicImage


class GroupPartitionEvents:
    """Fits `PartitionEvents`, in front of the replicas' own.

    However the offsets topic comes to be, grows or goes, the coordinator leads just the partitions that there
    are; and whatever topic is deleted, its offsets are. Loading is not waited for: until it is over, requests
    are answered COORDINATOR_LOAD_IN_PROGRESS, and a new partition has nothing to load.
    """

    def __init__(self, replicas: PartitionEvents, coordinator: GroupCoordinator, stored_offsets: StoredOffsets) -> None:
        self._replicas = replicas
        self._coordinator = coordinator
        self._stored_offsets = stored_offsets

    def open_partitions(self, topic: TopicImage) -> Deferred[None]:
        """See PartitionEvents."""
        opened = self._replicas.open_partitions(topic)
        return opened.addCallback(lambda _: self._lead(topic)) if topic.name == OFFSETS_TOPIC else opened

    def _lead(self, topic: TopicImage) -> None:
        for each in topic.partitions:
            self._coordinator.on_election(each.partition)

    def delete_partitions(self, topic: TopicImage) -> Deferred[None]:
        """See PartitionEvents."""
        if topic.name == OFFSETS_TOPIC:
            for each in topic.partitions:
                self._coordinator.on_resignation(each.partition)
        else:
            self._coordinator.on_topics_deleted({topic.name: topic.topic_id})
            self._stored_offsets.topic_deleted(topic.name)
        return self._replicas.delete_partitions(topic)

    def configs_changed(self, topic: TopicImage) -> None:
        """See PartitionEvents."""
        self._replicas.configs_changed(topic)
