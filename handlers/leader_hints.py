"""The new leader in a refusal, so that the client need not ask for metadata first (KIP-951)."""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.endpoints import ReachableBroker, find_broker


class LeaderHints:
    """The leaders that one response names; ``addresses`` holds each of them once, by its id."""

    def __init__(self, context: RequestContext, services: Services) -> None:
        self.addresses: dict[int, ReachableBroker] = {}
        self._context = context
        self._services = services

    def find_leader(self, topic: str | bytes, index: int) -> tuple[int, int] | None:
        """Return (id, leader epoch) of a partition's leader as the metadata has it; None for an unknown partition."""
        image = self._services.metadata.image
        topic_image = image.topics.get(topic) if isinstance(topic, str) else image.topics_by_id.get(topic)
        partition = image.partition(topic_image.name, index) if topic_image is not None else None
        if partition is None:
            return None
        broker = image.brokers.get(partition.leader)
        address = find_broker(broker, self._context, self._services) if broker is not None else None
        if address is not None:
            self.addresses[address.node_id] = address
        return partition.leader, partition.leader_epoch
