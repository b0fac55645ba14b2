"""The clusters of a chaos run: three brokers on hosts of a network, ours with one ZooKeeper or three, and Apache Kafka in KRaft mode."""

from __future__ import annotations

import shutil
import time
from abc import abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compat_tests.brokers import Broker, KafkacompatBroker
from compat_tests.chaos.ensemble import ZooKeeperEnsemble
from compat_tests.chaos.network import Host, Network
from compat_tests.clusters import NODES, REPLICATED, Cluster, KafkaNode
from compat_tests.processes import suspend_process
from kafkacompat.history.broker import PROPERTIES

PORT, CONTROLLER_PORT = 9092, 9093
SESSION_MS = 4_000
"""Time after which a silent broker counts as failed."""

BROKERS = {node: f"broker-{node}" for node in NODES}
"""The names of the brokers' hosts by node."""

COMMON = {**REPLICATED, **PROPERTIES, "replica.lag.time.max.ms": "5000", "kafkacompat.disk.reserve.bytes": str(8 << 20)}


class ChaosCluster(Cluster):
    """Three brokers on hosts. ``ensemble`` is the ZooKeeper that coordinates them, None for Apache Kafka."""

    ensemble: ZooKeeperEnsemble | None = None

    def __init__(self, folder: Path, network: Network, properties: Mapping[str, str]) -> None:
        super().__init__(folder, {**COMMON, **properties})
        self.network = network

    def host(self, node: int) -> Host:
        """Return a broker's host."""
        return self.network.hosts[BROKERS[node]]

    def prepare(self) -> None:
        """Lay out the brokers' folders, whose data folders may be mounted already."""
        for broker in self.brokers.values():
            broker.prepare()

    def stop(self) -> None:
        """End everything with SIGKILL."""
        for broker in self._running():
            broker.kill()

    def suspend(self, node: int) -> None:
        """Let a broker stand still: its connections stay open, and it answers nothing."""
        suspend_process(self.brokers[node].pid)

    def revive(self) -> list[str]:
        """Start the brokers again that ended by themselves; return their names and exit codes."""
        ended = []
        for node, broker in self.brokers.items():
            if broker.process is not None and (code := broker.process.poll()) is not None:
                ended.append(f"{BROKERS[node]} with code {code}")
                broker.process = None
            if broker.process is None:
                self.start_node(node)
        return ended

    def settle(self, broker: Broker, node: int) -> None:
        """Place a broker on its host."""
        host = self.host(node)
        broker.host, broker.prefix, broker.port = host.address, host.prefix, PORT
        self.brokers[node] = broker

    @abstractmethod
    def wipe(self, node: int) -> None:
        """Empty the data folder of a broker that does not run, as a new disk is."""


class OurChaosCluster(ChaosCluster):
    """Ours, coordinated by an ensemble on the hosts that have names like zookeeper-1."""

    kind = "kafkacompat"

    def __init__(
        self, folder: Path, network: Network, properties: Mapping[str, str], zookeepers: Sequence[Host]
    ) -> None:
        super().__init__(folder, network, properties)
        self.ensemble = ZooKeeperEnsemble(folder, zookeepers)
        for node in NODES:
            own = {
                "broker.id": str(node),
                "zookeeper.connect": f"{self.ensemble.connect}/kafka",
                "zookeeper.session.timeout.ms": str(SESSION_MS),
                "zookeeper.connection.timeout.ms": "30000",
                "controlled.shutdown.retry.backoff.ms": "200",
            }
            self.settle(KafkacompatBroker(folder / str(node), {**self.properties, **own}), node)

    def start(self) -> float:
        """Start ZooKeeper, then the brokers."""
        assert self.ensemble is not None
        begun = time.monotonic()
        self.ensemble.start()
        self._start_brokers()
        return time.monotonic() - begun

    def stop(self) -> None:
        """End the brokers, and ZooKeeper after them."""
        super().stop()
        assert self.ensemble is not None
        self.ensemble.kill()

    def wipe(self, node: int) -> None:
        empty_folder(self.brokers[node].data_folder)


class KafkaChaosCluster(ChaosCluster):
    """Apache Kafka 4.3.1: each node is broker and controller."""

    kind = "kafka"
    HEAP = "512m"

    def __init__(self, folder: Path, network: Network, properties: Mapping[str, str]) -> None:
        super().__init__(folder, network, properties)
        cluster_id = urlsafe_b64encode(bytes(15) + b"\x01").rstrip(b"=").decode()
        voters = ",".join(f"{node}@{self.host(node).address}:{CONTROLLER_PORT}" for node in NODES)
        for node in NODES:
            address = self.host(node).address
            own = {
                "node.id": str(node),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://{address}:{PORT},CONTROLLER://{address}:{CONTROLLER_PORT}",
                "broker.session.timeout.ms": str(SESSION_MS),
                "broker.heartbeat.interval.ms": "1000",
            }
            self.settle(KafkaNode(folder / str(node), {**self.properties, **own}, cluster_id, self.HEAP), node)

    def start(self) -> float:
        """Start the nodes at once."""
        begun = time.monotonic()
        self._start_brokers()
        return time.monotonic() - begun

    def prepare(self) -> None:
        """Format the storage of all nodes at once."""
        with ThreadPoolExecutor(len(self.brokers)) as threads:
            list(threads.map(lambda broker: broker.prepare(), self.brokers.values()))

    def wipe(self, node: int) -> None:
        broker = self.brokers[node]
        empty_folder(broker.data_folder)
        broker.prepare()


def empty_folder(folder: Path) -> None:
    """Delete everything in a folder, which may be a mount itself."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
