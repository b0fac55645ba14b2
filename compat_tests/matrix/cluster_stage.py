"""Three of our brokers as a stage, each with a proxy before it; every topic that a client creates gets three replicas.

Brokers reach each other at a listener of their own, so that the proxies record clients alone.
"""

from __future__ import annotations

from pathlib import Path

from compat_tests.clusters import NODES, KafkacompatCluster
from compat_tests.matrix.driver import Launch
from compat_tests.matrix.programme import PARTITIONS, Outcome, Programme
from compat_tests.matrix.proxy import RecordingProxy
from compat_tests.matrix.recording import Recording
from compat_tests.matrix.rows import Row
from compat_tests.matrix.run import Tell, make_internal_topics, served_apis
from compat_tests.ports import free_port
from compat_tests.waiting import until
from kafkacompat.cli.cluster.reassigning import ClusterMover
from kafkacompat.cli.cluster.spreading import ReplicaMove
from kafkacompat.cli.requests import BlockingConnection

INTERNAL = "INTERNAL"
PROPERTIES = {
    "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{INTERNAL}:PLAINTEXT",
    "inter.broker.listener.name": INTERNAL,
    "num.partitions": str(PARTITIONS),
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}


class ProxyGroup:
    """The proxies of several brokers, which record into one recording."""

    def __init__(self, proxies: list[RecordingProxy]) -> None:
        self._proxies = proxies

    @property
    def recording(self) -> Recording:
        """What passes on connections that are made from now on."""
        return self._proxies[0].recording

    @recording.setter
    def recording(self, recording: Recording) -> None:
        for proxy in self._proxies:
            proxy.recording = recording

    def hang_up(self) -> None:
        """End every connection."""
        for proxy in self._proxies:
            proxy.hang_up()

    def close(self) -> None:
        """Stop listening and hang up on everybody."""
        for proxy in self._proxies:
            proxy.close()


class ClusterStage:
    """Three brokers, and a proxy for each, whose address the broker advertises."""

    kind = "kafkacompat, three brokers"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cluster = KafkacompatCluster(folder / "cluster", PROPERTIES)
        ports = {node: free_port() for node in NODES}
        for node, broker in self._cluster.brokers.items():
            internal = f"{INTERNAL}://127.0.0.1:{free_port()}"
            broker.properties["listeners"] = f"PLAINTEXT://127.0.0.1:{broker.port},{internal}"
            broker.properties["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{ports[node]},{internal}"
        # Most clients take one address; the others come from the metadata.
        self._bootstrap = f"127.0.0.1:{ports[NODES[0]]}"
        proxies = [RecordingProxy(ports[node], broker.port) for node, broker in self._cluster.brokers.items()]
        self._proxies = ProxyGroup(proxies)
        addresses = [("127.0.0.1", broker.port) for broker in self._cluster.brokers.values()]
        self._mover = ClusterMover(addresses, BlockingConnection)

    def __enter__(self) -> ClusterStage:
        self._cluster.start()
        make_internal_topics(self._cluster.brokers[NODES[0]].port)
        return self

    def __exit__(self, *_: object) -> None:
        self._proxies.close()
        self._cluster.stop()

    def perform(self, row: Row, launch: Launch, tell: Tell) -> Outcome:
        """Run one client's programme."""
        said = self._folder / "cluster-clients"
        said.mkdir(exist_ok=True)
        served = served_apis(self._cluster.brokers[NODES[0]].port)
        programme = Programme(row.name, launch, self._proxies, self._bootstrap, said, served, self._replicate)
        return programme.run(row.features, lambda step: tell(f"{self.kind}: {step}"))

    def _replicate(self, topic: str) -> None:
        """Give each partition of the topic a replica on every broker; its leader stays the first one."""
        layout = self._mover.read_layout()
        moves = [
            ReplicaMove(name, replicas, (*replicas, *(node for node in NODES if node not in replicas)))
            for name, replicas in layout.assignments.items()
            if name.topic == topic
        ]
        self._mover.begin(layout, moves)
        until(lambda: not self._mover.read_layout().ongoing)
