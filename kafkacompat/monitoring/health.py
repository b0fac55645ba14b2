"""Whether the broker serves, for /readyz and for the metric of its state."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkacompat.cluster_node import ClusterNode
    from kafkacompat.monitoring.observed import Observed


class BrokerState(IntEnum):
    """The states of a broker, by Kafka's numbers."""

    STARTING = 1
    RUNNING = 3
    STOPPING = 6


class Health:
    """The broker's state. ``observed`` is set when the logs are open."""

    def __init__(self) -> None:
        self.broker_state = BrokerState.STARTING
        self.observed: Observed | None = None

    def find_objection(self) -> str | None:
        """Return why clients are not served as they should be; None if they are."""
        if self.broker_state is BrokerState.STOPPING:
            return "the broker stops"
        observed = self.observed
        if observed is None or self.broker_state is BrokerState.STARTING:
            return "the broker starts: its logs are not open yet"
        if all(directory.offline for directory in observed.directories):
            return "every log directory is offline"
        return None if observed.node is None else self._find_cluster_objection(observed, observed.node)

    @staticmethod
    def _find_cluster_objection(observed: Observed, node: ClusterNode) -> str | None:
        if node.member.registration.epoch < 0:
            return "the broker is not registered in ZooKeeper"
        if not node.is_connected:
            return "the session with ZooKeeper is not connected"
        if observed.config.node_id not in observed.metadata.image.brokers:
            return "the controller has not sent this broker any metadata yet"
        return None
