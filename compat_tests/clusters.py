"""Clusters to test, three brokers in processes of their own: ours with a real ZooKeeper, and Apache Kafka 4.3.1 in KRaft mode.

The brokers have the ids 1, 2, 3. A node that was killed or stopped starts again over its folder and on its port.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.brokers import Broker, KafkaBroker, KafkacompatBroker
from compat_tests.java_tools import SHORT_LIVED, java_command
from compat_tests.ports import free_port
from compat_tests.processes import cpu_seconds, resident_bytes
from compat_tests.raw_client import ClosedError, RawClient
from compat_tests.waiting import until
from compat_tests.zookeeper import ZooKeeperServer
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from typing_extensions import Self

NODES = (1, 2, 3)
START_SECONDS = 60
METADATA_VERSION = 9

REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
}
"""Properties of every broker: one of the three may be away without stopping anybody."""


class Cluster(ABC):
    """Three brokers below one folder. ``properties`` are those of every broker, beyond `REPLICATED`."""

    kind = ""

    def __init__(self, folder: Path, properties: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.properties = {**REPLICATED, **(properties or {})}
        self.brokers: dict[int, Broker] = {}

    @property
    def bootstrap(self) -> str:
        """Value of bootstrap.servers with every broker."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> float:
        """Start everything; return the seconds until each broker's metadata named all of them."""

    def stop(self) -> None:
        """Stop the brokers, the last one first."""
        for broker in reversed(self.brokers.values()):
            broker.stop()

    def start_node(self, node: int) -> float:
        """Start one broker again; return the seconds until it answered ApiVersions."""
        return self.brokers[node].start(START_SECONDS)

    def stop_node(self, node: int) -> None:
        """Stop one broker as an administrator does, so that it hands over its partitions."""
        self.brokers[node].stop()

    def kill(self, node: int) -> None:
        """End one broker with SIGKILL."""
        self.brokers[node].kill()

    def cpu_seconds(self) -> float:
        """Return the CPU time of all brokers that run now."""
        return sum(broker.cpu_seconds() for broker in self._running())

    def resident_bytes(self) -> int:
        """Return the memory that all brokers hold now."""
        return sum(broker.resident_bytes() for broker in self._running())

    def zookeeper_cpu_seconds(self) -> float:
        """Return the CPU time of an external coordinator of the brokers (ZooKeeper); 0.0 without one."""
        return 0.0

    def zookeeper_resident_bytes(self) -> int:
        """Return the memory of an external coordinator of the brokers (ZooKeeper); 0 without one."""
        return 0

    def _running(self) -> Sequence[Broker]:
        return [broker for broker in self.brokers.values() if broker.process is not None]

    def _start_brokers(self) -> None:
        """Start the brokers at once, and wait until each one knows all of them."""
        with ThreadPoolExecutor(len(self.brokers)) as threads:
            starts = [threads.submit(broker.start, START_SECONDS) for broker in self.brokers.values()]
        for start in starts:
            start.result()
        for broker in self.brokers.values():
            until(lambda broker=broker: self._knows_all(broker), timeout_seconds=START_SECONDS)  # type: ignore[misc]

    def _knows_all(self, broker: Broker) -> bool:
        try:
            with RawClient(broker.port) as client:
                answer = client.call(MetadataRequest(topics=[]), MetadataResponse, METADATA_VERSION)
        except (ClosedError, OSError):
            return False
        return sorted(member.node_id for member in answer.brokers) == list(self.brokers)


class KafkacompatCluster(Cluster):
    """Three processes of ``kafkacompat serve``, and one ZooKeeper."""

    kind = "kafkacompat"

    def __init__(self, folder: Path, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, properties)
        self.zookeeper = ZooKeeperServer(folder / "zookeeper")
        for node in NODES:
            own = {
                "broker.id": str(node),
                "zookeeper.connect": f"{self.zookeeper.connect}/kafka",
                # The broker that stops last cannot hand over its partitions, and would try three times in 15 s.
                "controlled.shutdown.retry.backoff.ms": "200",
            }
            self.brokers[node] = KafkacompatBroker(folder / str(node), {**self.properties, **own})

    def start(self) -> float:
        """Start ZooKeeper, then the brokers."""
        begun = time.monotonic()
        self.zookeeper.start()
        self._start_brokers()
        return time.monotonic() - begun

    def stop(self) -> None:
        """Stop the brokers, and ZooKeeper after them."""
        super().stop()
        self.zookeeper.kill()

    def zookeeper_cpu_seconds(self) -> float:
        """Return ZooKeeper's CPU time since it started."""
        return cpu_seconds(self.zookeeper.pid)

    def zookeeper_resident_bytes(self) -> int:
        """Return the memory that ZooKeeper holds now."""
        return resident_bytes(self.zookeeper.pid)


class KafkaNode(KafkaBroker):
    """One node of a KRaft cluster, broker and controller; the quorum's voters and the cluster's id are given."""

    def __init__(self, folder: Path, properties: Mapping[str, str], cluster_id: str, heap: str) -> None:
        super().__init__(folder, properties)
        self._own_cluster_id = cluster_id
        self._heap = heap

    def _cluster_id(self) -> str:
        return self._own_cluster_id

    def command(self) -> Sequence[str]:
        return java_command("kafka.Kafka", [str(self._properties_file())], jvm=self.JVM, heap=self._heap)


class KafkaCluster(Cluster):
    """Three nodes of Apache Kafka 4.3.1 with combined roles."""

    kind = "kafka"
    JVM: Sequence[str] = SHORT_LIVED
    HEAP = "512m"

    def __init__(self, folder: Path, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, properties)
        controllers = {node: free_port() for node in NODES}
        cluster_id = urlsafe_b64encode(controllers[1].to_bytes(16, "big")).rstrip(b"=").decode()
        for node, controller in controllers.items():
            own = {
                "node.id": str(node),
                "controller.quorum.voters": ",".join(
                    f"{voter}@127.0.0.1:{port}" for voter, port in controllers.items()
                ),
            }
            broker = KafkaNode(folder / str(node), {**self.properties, **own}, cluster_id, self.HEAP)
            broker.JVM = self.JVM
            broker.properties["listeners"] = f"{_name_listener(broker.port)},CONTROLLER://127.0.0.1:{controller}"
            self.brokers[node] = broker

    def start(self) -> float:
        """Start the three nodes at once; their storage is formatted before."""
        for broker in self.brokers.values():
            if not broker.folder.exists():
                broker.prepare()
        begun = time.monotonic()
        self._start_brokers()
        return time.monotonic() - begun

    def stop(self) -> None:
        """End the nodes with SIGKILL: without a majority of controllers, a node that is asked to stop waits for minutes."""
        for node in self._running():
            node.kill()


def _name_listener(port: int) -> str:
    return f"PLAINTEXT://127.0.0.1:{port}"


CLUSTERS: dict[str, type[Cluster]] = {cluster.kind: cluster for cluster in (KafkacompatCluster, KafkaCluster)}
