"""The controller, as the broker that is it sees the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.cluster.election_counts import ElectionCounts
from kafkacompat.metadata.image import NO_LEADER
from kafkacompat.monitoring.collectors import IN_A_TURN, Collected
from kafkacompat.monitoring.table import make_metric

if TYPE_CHECKING:
    from kafkacompat.metadata.image import MetadataImage
    from kafkacompat.monitoring.health import Health
    from kafkacompat.monitoring.observed import Observed

CONTROLLER = "kafka_controller_kafkacontroller_"
STATS = "kafka_controller_controllerstats_"


class ControllerCollector:
    """Collects the controller's view, which is empty on every other broker, and the state of this broker."""

    def __init__(self, observed: Observed, health: Health) -> None:
        self._observed = observed
        self._health = health

    def collect(self) -> Collected:
        """Yield the metrics."""
        node = self._observed.node
        image = self._observed.metadata.image if node is None else node.find_controlled_image()
        yield make_metric(f"{CONTROLLER}activecontrollercount", image is not None)
        yield make_metric(f"{CONTROLLER}activebrokercount", 0 if image is None else max(len(image.brokers), 1))
        yield make_metric(f"{CONTROLLER}globaltopiccount", 0 if image is None else len(image.topics))
        yield from self._collect_partitions(image)
        counts = ElectionCounts() if node is None else node.member.election_counts
        yield make_metric(f"{STATS}leaderelectionrateandtimems_count", counts.elections)
        yield make_metric(f"{STATS}uncleanleaderelections", counts.unclean)
        yield make_metric("kafka_server_kafkaserver_brokerstate", self._health.broker_state)
        yield make_metric("kafkacompat_ready", self._health.find_objection() is None)
        if node is not None:
            yield make_metric("kafkacompat_zookeeper_connected", node.is_connected)

    def _collect_partitions(self, image: MetadataImage | None) -> Collected:
        partitions = leaderless = imbalanced = 0
        for number, topic in enumerate([] if image is None else list(image.topics.values()), 1):
            partitions += len(topic.partitions)
            for partition in topic.partitions:
                leaderless += partition.leader == NO_LEADER
                imbalanced += partition.leader not in (NO_LEADER, partition.replicas[0])
            if number % IN_A_TURN == 0:
                yield None
        yield make_metric(f"{CONTROLLER}globalpartitioncount", partitions)
        yield make_metric(f"{CONTROLLER}offlinepartitionscount", leaderless)
        yield make_metric(f"{CONTROLLER}preferredreplicaimbalancecount", imbalanced)
