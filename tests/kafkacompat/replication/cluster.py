"""Brokers that lead and follow each other on one clock, with faults that a seed chooses.

Every batch that a leader appends is noted with the batch before it. A replica's log is sound if each of its batches follows
the same batch as in the log of the leader that appended it (log matching).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from twisted.internet.task import Clock

from kafkacompat.partitions.replication_quota import RateWindow, ReplicationQuota
from kafkacompat.replication.replica_fetcher_manager import ReplicaFetcherManager
from kafkacompat.replication.settings import FetchSettings
from kafkacompat.wire.apis.fetch import FetchRequest
from kafkacompat.wire.record_batch import read_header
from kafkacompat.wire.schema import Request
from tests.kafkacompat.replication.network import Delays, Link
from tests.kafkacompat.replication.replica_log import ReplicaLog
from tests.kafkacompat.replication.serving import ServingBroker, Versions

STEP_S = 0.01
NODES = (1, 2, 3)
START = (-1, -1)
"""Stands for the beginning of a log, before its first batch."""


class Faults(NamedTuple):
    """What goes wrong. ``elects_any``: any replica may become leader at any time, and brokers learn of it late."""

    elects_any: bool
    loses_messages: float = 0.05
    most_delay_s: float = 0.05


class Node:
    """One broker: its logs, what it leads, and what it follows."""

    def __init__(self, cluster: SimulatedCluster, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.logs: dict[tuple[str, int], ReplicaLog] = {}
        self.life = 0
        for key in cluster.keys:
            self.logs[key] = ReplicaLog(*key, finish=self.finish, syncs=cluster.syncs)
        self.start()

    def start(self) -> None:
        """Begin to serve and to follow, with the logs as they are."""
        cluster = self.cluster
        self.serving = ServingBroker(cluster.versions, cluster.rng, session_slots=cluster.rng.choice([0, 1, 10]))
        cluster.serving[self.node_id] = self.serving
        self.link = Link(cluster.clock, cluster.serving, cluster.choose_delays)
        self.link.watch = self.check_request
        quota = ReplicationQuota(self.node_id, RateWindow(cluster.clock, 11, 1000))
        settings = FetchSettings(
            self.node_id,
            cluster.truncates_on_fetch,
            fetcher_count=2,
            partition_max_bytes=400,
            response_max_bytes=700,
            wait_max_ms=40,
            backoff_ms=50,
        )
        self.manager = ReplicaFetcherManager(lambda _: self.link, settings, cluster.clock, quota, lambda: self.life)

    def finish(self, end: Callable[[], None]) -> None:
        """End a change of a log now or later, unless the broker crashes before."""
        life, delay_s = self.life, self.cluster.rng.choice([0.0, 0.0, 0.02, 0.1])
        if not delay_s:
            end()
            return
        self.cluster.clock.callLater(delay_s, lambda: end() if self.life == life else None)

    def check_request(self, request: Request) -> None:
        """Note a fetch that reports what a crash could take away; a fetcher would survive a failed assertion here."""
        if isinstance(request, FetchRequest):
            for topic in request.topics:
                for partition in topic.partitions:
                    log = self.logs[topic.topic, partition.partition]
                    if partition.fetch_offset > log.reported_end_offset:
                        self.cluster.problems.append(f"{log!r}: {partition.fetch_offset} is not on the disk")

    @property
    def is_alive(self) -> bool:
        return self.node_id in self.cluster.serving

    def learn(self, key: tuple[str, int], leader_id: int, leader_epoch: int) -> None:
        """Take over what the controller says of a partition."""
        if not self.is_alive or leader_epoch < self.cluster.known_epochs.get((self.node_id, key), -1):
            return
        self.cluster.known_epochs[self.node_id, key] = leader_epoch
        if leader_id != self.node_id:
            self.serving.led.pop(key, None)
            self.manager.follow(self.logs[key], leader_id, leader_epoch)
            return
        serving, log = self.serving, self.logs[key]

        def lead(_: object) -> None:
            if self.serving is serving and self.cluster.leaders[key] == (leader_id, leader_epoch):
                log.sync()
                serving.lead(log, leader_epoch)

        self.manager.stop(*key).addCallback(lead)

    def crash(self) -> None:
        """Lose what is not on the disk, and every connection."""
        self.life += 1
        self.manager.stop_all()
        del self.cluster.serving[self.node_id]
        cluster = self.cluster
        self.logs = {
            key: log.crash(cluster.rng, finish=self.finish, syncs=cluster.syncs) for key, log in self.logs.items()
        }


class SimulatedCluster:
    """Three brokers, their controller, and their producers."""

    def __init__(self, seed: int, versions: Versions, faults: Faults, *, truncates_on_fetch: bool, syncs: bool) -> None:
        self.rng = Random(seed)
        self.clock = Clock()
        self.versions = versions
        self.faults = faults
        self.truncates_on_fetch = truncates_on_fetch
        self.syncs = syncs
        self.keys = [("t", 0), ("t", 1), ("u", 0)]
        self.serving: dict[int, ServingBroker] = {}
        self.leaders: dict[tuple[str, int], tuple[int, int]] = {}
        self.known_epochs: dict[tuple[int, tuple[str, int]], int] = {}
        self.predecessors: dict[tuple[tuple[str, int], int, int], tuple[tuple[int, int], bytes]] = {}
        self.problems: list[str] = []
        self.has_faults = True
        self.nodes = {node_id: Node(self, node_id) for node_id in NODES}
        for key in self.keys:
            self.elect(key, self.rng.choice(NODES))

    def choose_delays(self) -> Delays:
        """Return the delays of a request; None to lose it."""
        faults = self.faults
        if self.has_faults and self.rng.random() < faults.loses_messages:
            return None
        return self.rng.uniform(0, faults.most_delay_s), self.rng.uniform(0, faults.most_delay_s)

    # What happens

    def elect(self, key: tuple[str, int], leader_id: int) -> None:
        """Begin a leader epoch; each broker learns of it at once or later."""
        epoch = self.leaders.get(key, (0, 0))[1] + self.rng.randint(1, 2)
        self.leaders[key] = leader_id, epoch
        for node in self.nodes.values():
            self.tell(node, key)

    def tell(self, node: Node, key: tuple[str, int]) -> None:
        """Let a broker learn who leads a partition."""
        leader_id, epoch = self.leaders[key]
        if self.faults.elects_any and self.has_faults:
            self.clock.callLater(self.rng.uniform(0, 0.3), node.learn, key, leader_id, epoch)
        else:
            node.learn(key, leader_id, epoch)

    def produce(self) -> None:
        """Append some batches to a partition, where a broker thinks that it leads it."""
        node, key = self.nodes[self.rng.choice(NODES)], self.rng.choice(self.keys)
        if not node.is_alive or key not in node.serving.led:
            return
        log, epoch = node.serving.led[key]
        for _ in range(self.rng.randint(1, 4)):
            before = log.spans[-1] if log.batches else START
            log.produce(epoch, f"{self.rng.random()} at {node.node_id}", count=self.rng.randint(1, 3))
            self.predecessors[key, epoch, log.spans[-1][1]] = before, log.batches[-1]
        if self.rng.random() < 0.5:
            log.sync()

    def advance_high_watermarks(self) -> None:
        """Let each leader count what every replica has."""
        for serving in self.serving.values():
            for key, (log, _) in serving.led.items():
                positions = serving.positions[key]
                if len(positions) == len(NODES) - 1:
                    high_watermark = min(log.log_end_offset, *positions.values())
                    log.high_watermark = max(log.high_watermark, high_watermark)

    def delete_records(self) -> None:
        """Move the start of a leader's log to its high watermark at most, or beyond it as retention never would."""
        node, key = self.nodes[self.rng.choice(NODES)], self.rng.choice(self.keys)
        if node.is_alive and key in node.serving.led:
            log = node.serving.led[key].log
            most = self.rng.choice([log.high_watermark, log.high_watermark, log.log_end_offset])
            log.delete_records(self.rng.randint(0, most))

    def change_leader(self) -> None:
        """Elect a living replica; one that has everything, unless any may be elected."""
        key = self.rng.choice(self.keys)
        if self.faults.elects_any:
            self.elect(key, self.rng.choice([node_id for node_id in NODES if self.nodes[node_id].is_alive]))
        else:
            self.has_faults = False
            self.settle()
            self.elect(key, self.rng.choice(NODES))
            self.has_faults = True

    def crash(self) -> None:
        """Stop a broker without warning, and start it later; two of three live."""
        node = self.nodes[self.rng.choice(NODES)]
        if len(self.serving) < len(NODES):
            return
        led = [key for key in self.keys if self.leaders[key][0] == node.node_id]
        if led and not self.faults.elects_any:
            return
        node.crash()
        for key in led:
            self.elect(key, self.rng.choice(list(self.serving)))
        self.clock.callLater(self.rng.uniform(0.1, 1.0), self.restart, node)

    def restart(self, node: Node) -> None:
        """Start a broker that crashed."""
        if not node.is_alive:
            node.start()
            for key in self.keys:
                self.tell(node, key)

    # Running and checking

    def run(self, seconds: float) -> None:
        """Let things happen."""
        actions = [self.produce] * 60 + [self.change_leader] * 3 + [self.crash] * 2 + [self.delete_records] * 3
        for _ in range(int(seconds / STEP_S)):
            if self.rng.random() < 0.3:
                self.rng.choice(actions)()
            self.step()

    def step(self) -> None:
        """Let a moment pass, and check every log."""
        self.clock.advance(STEP_S)
        if self.rng.random() < 0.02:
            self.nodes[self.rng.choice(NODES)].logs[self.rng.choice(self.keys)].sync()
        self.advance_high_watermarks()
        self.check_logs()

    def check_logs(self) -> None:
        """Check that every batch is what its leader appended, after what its leader had before it."""
        assert self.problems == []
        for node in self.nodes.values():
            for key, log in node.logs.items():
                before: tuple[int, int] | None = START if log.log_start_offset == 0 else None
                for batch in log.batches:
                    header = read_header(batch)
                    span = (header.partition_leader_epoch, header.base_offset)
                    expected, appended = self.predecessors[(key, *span)]
                    assert batch == appended
                    # The first batches of a log may have been deleted.
                    assert before in (None, expected) or expected[1] < log.log_start_offset
                    before = span

    def settle(self) -> None:
        """Wait until nothing differs."""
        for _ in range(int(30 / STEP_S)):
            self.step()
            if not self.list_differences():
                return
        raise AssertionError("; ".join(self.list_differences()))

    def stop_faults(self) -> None:
        """Start every broker, and let all of them know the leaders."""
        self.has_faults = False
        for node in self.nodes.values():
            self.restart(node)
        for key in self.keys:
            for node in self.nodes.values():
                node.learn(key, *self.leaders[key])

    def list_differences(self) -> list[str]:
        """Return a sentence for each replica that differs from its leader."""
        sentences = list[str]()
        for key, (leader_id, epoch) in self.leaders.items():
            theirs = self.nodes[leader_id].logs[key]
            for node in self.nodes.values():
                ours = node.logs[key]
                # A replica that was ahead may have deleted more than its new leader.
                start = max(ours.log_start_offset, theirs.log_start_offset)
                # Before Fetch 5 followers do not learn where the leader's log starts.
                is_short = ours.log_start_offset < theirs.log_start_offset and self.versions.fetch >= 5
                if is_short or ours.list_batches(start) != theirs.list_batches(start):
                    sentences.append(f"{key} in epoch {epoch}: node {node.node_id} differs from node {leader_id}")
        return sentences
