"""The new leader in a refusal, so that the client need not ask for metadata first (KIP-951)."""

from __future__ import annotations

from typing import NamedTuple

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.metadata.advertised import find_advertised_address


class LeaderAddress(NamedTuple):
    """The address of a leader for the client's listener."""

    node_id: int
    host: str
    port: int
    rack: str | None


class LeaderHints:
    """The leaders that one response names; ``addresses`` holds each of them once, by its id."""

    def __init__(self, context: RequestContext, services: Services) -> None:
        self.addresses: dict[int, LeaderAddress] = {}
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
        if broker is not None:
            host, port = find_advertised_address(broker, self._context.peer)
            self.addresses[broker.node_id] = LeaderAddress(broker.node_id, host, port, broker.rack)
        return partition.leader, partition.leader_epoch
