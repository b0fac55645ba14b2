"""A coordinator follows the partitions of its topic by the controller's events, or by its orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.metadata.image import PartitionImage, TopicImage
    from kafkacompat.metadata.local_replicas import PartitionEvents


class TopicRoles(NamedTuple):
    """How a coordinator begins and ends to lead a partition of its topic."""

    lead: Callable[[PartitionImage], object]
    resign: Callable[[int], object]


class CoordinatorRoles:
    """Notifies the coordinators of the partitions that this broker leads.

    ``by_topic`` has the coordinators by the names of their topics; the partitions of other topics change nothing.
    ``forget_topic`` is called for each topic that is deleted. Loading happens later; until a partition is loaded its
    coordinator answers COORDINATOR_LOAD_IN_PROGRESS. A new partition has nothing to load.
    """

    def __init__(self, by_topic: Mapping[str, TopicRoles], forget_topic: Callable[[TopicImage], object]) -> None:
        self._by_topic = by_topic
        self._forget_topic = forget_topic

    def lead(self, topic: str, partition: PartitionImage) -> None:
        """This broker leads the partition in that leader epoch; repeating it changes nothing."""
        if roles := self._by_topic.get(topic):
            roles.lead(partition)

    def resign(self, topic: str, index: int) -> None:
        """This broker does not lead the partition, whether it did before or not.

        The caller leaves out the orders of older leader epochs: it knows the partition's epoch.
        """
        if roles := self._by_topic.get(topic):
            roles.resign(index)

    def forget(self, topic: TopicImage) -> None:
        """A topic is deleted."""
        self._forget_topic(topic)


class CoordinatorEvents:
    """Implements `PartitionEvents` of a single node: passes each event on to the ``next_receiver``, and turns it into roles.

    A single node leads exactly the partitions that exist, however a topic is created, grows or is deleted.
    """

    def __init__(self, next_receiver: PartitionEvents, roles: CoordinatorRoles) -> None:
        self._next_receiver = next_receiver
        self._roles = roles

    def open_partitions(self, topic: TopicImage) -> Deferred[None]:
        """See PartitionEvents."""
        return self._next_receiver.open_partitions(topic).addCallback(lambda _: self._lead_all(topic))

    def _lead_all(self, topic: TopicImage) -> None:
        for partition in topic.partitions:
            self._roles.lead(topic.name, partition)

    def delete_partitions(self, topic: TopicImage) -> Deferred[None]:
        """See PartitionEvents."""
        for partition in topic.partitions:
            self._roles.resign(topic.name, partition.partition)
        self._roles.forget(topic)
        return self._next_receiver.delete_partitions(topic)

    def configs_changed(self, topic: TopicImage) -> None:
        """See PartitionEvents."""
        self._next_receiver.configs_changed(topic)
