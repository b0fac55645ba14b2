"""Three whole brokers and ZooKeeper on one clock: without a thread, a socket or a wait."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.broker import Broker
from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.cluster_node import ClusterNode
from kafkacompat.config import BrokerConfig
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.wire.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch, read_header, read_records, split_batches
from kafkacompat.wire.schema import Request
from kafkacompat.zookeeper.memory import SESSION_TIMEOUT_SECONDS, MemoryZooKeeper
from kafkacompat.zookeeper.memory_client import MemoryClient
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.memory_host import MemoryHost
from tests.fakes.memory_network import MemoryNetwork
from tests.fakes.process_clock import ProcessClock

PORT = 9092
START_S = 1_700_000_000
TURN_S = 0.02
TIMEOUT_S = 30.0
NODES = (1, 2, 3)
MACHINES = (1, 2, 3, 4, 5)
"""The ids that brokers may have."""
LAG_S = 4.0
CHROOT = "/kafka"


class Cluster:
    """Brokers 1 to 3, or *nodes*, on hosts of their own, and clients' hosts.

    Keyword arguments are properties of all brokers, with underscores for dots. ``leaders`` notes which life of which broker led
    a partition in which epoch; `advance` fails when two did.
    """

    def __init__(self, nodes: Sequence[int] = NODES, **properties: str) -> None:
        self.clock = Clock()
        self.clock.advance(START_S)
        self.network = MemoryNetwork(self.clock)
        self.zookeeper = MemoryZooKeeper()
        self.files = {node: MemoryFiles() for node in MACHINES}
        self.properties = properties
        self.hosts: dict[int, Any] = {}
        self.clocks: dict[int, ProcessClock] = {}
        self.brokers: dict[int, Broker] = {}
        self.clients = 0
        self.lives = dict.fromkeys(MACHINES, 0)
        self.boots = dict.fromkeys(MACHINES, 0)
        self.ids: dict[str, bytes] = {}
        self.leaders: dict[tuple[bytes, int, int], tuple[int, int]] = {}
        for node in nodes:
            self.start(node)

    # Processes

    def build(self, node: int, host: str | None = None, **properties: str) -> Broker:
        """Return a broker that is not started."""
        given = {
            "broker.id": str(node),
            "listeners": f"PLAINTEXT://{host or f'broker-{node}'}:{PORT}",
            "log.dirs": "/data",
            "zookeeper.connect": f"zookeeper{CHROOT}",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2",
            "replica.lag.time.max.ms": str(int(LAG_S * 1000)),
            **{name.replace("_", "."): value for name, value in {**self.properties, **properties}.items()},
        }
        self.hosts[node] = network = self.network.at(host or f"broker-{node}")
        self.clocks[node] = ProcessClock(self.clock)
        self.lives[node] += 1
        machine = MemoryHost(
            self.clocks[node],
            network,
            files=self.files[node],
            rng=Random(node * 1000 + self.lives[node]),
            zookeeper=self.zookeeper,
            boot_id=f"boot {self.boots[node]} of machine {node}",
        )
        return Broker(machine, BrokerConfig(given))

    def build_double(self, node: int, host: str, files: MemoryFiles | None = None, **properties: str) -> Broker:
        """Return a broker on another host and *files* that has the id of one that runs; it is not started."""
        kept = self.files[node], self.lives[node], self.hosts[node], self.clocks[node], self.boots[node]
        self.files[node] = files or MemoryFiles()
        self.boots[node] += 1000
        double = self.build(node, host, **properties)
        self.files[node], self.lives[node], self.hosts[node], self.clocks[node], self.boots[node] = kept
        return double

    def begin(self, node: int, **properties: str) -> Deferred[None]:
        """Start a broker's process; fires when it is ready."""
        self.brokers[node] = broker = self.build(node, **properties)
        return Deferred.fromCoroutine(broker.start())

    def start(self, node: int, **properties: str) -> None:
        """Start a broker, and wait until it is ready."""
        self.run(self.begin(node, **properties))

    def kill(self, node: int, *, expire: bool = True, lose_unsynced: bool = False) -> None:
        """End a broker's process: its connections end. Its session expires now, or after its timeout.

        With *lose_unsynced* its machine loses its power, too.
        """
        session = self.client_of(node).session_id
        self.hosts[node].kill()
        self.clocks[node].kill()
        self.files[node].crash(lose_unsynced=lose_unsynced)
        self.boots[node] += lose_unsynced
        if expire:
            self.zookeeper.expire(session)
        else:
            self.clock.callLater(SESSION_TIMEOUT_SECONDS, self.zookeeper.expire, session)
        del self.brokers[node]

    def lose_disk(self, node: int) -> None:
        """Give the machine of a broker that does not run an empty disk, and start the machine again."""
        assert node not in self.brokers
        self.files[node] = MemoryFiles()
        self.boots[node] += 1

    def stop(self, node: int) -> None:
        """Stop a broker in order."""
        self.run(self.begin_stop(node))
        self.end_stop(node)

    def begin_stop(self, node: int) -> Deferred[None]:
        """Begin to stop a broker in order; fires when it has stopped."""
        return Deferred.fromCoroutine(self.brokers[node].stop())

    def end_stop(self, node: int) -> None:
        """End the process of a broker that has stopped."""
        del self.brokers[node]
        self.hosts[node].kill()
        self.clocks[node].kill()
        assert not self.files[node].locked

    def client_of(self, node: int) -> MemoryClient:
        """The client of ZooKeeper of a broker."""
        side: Any = self.brokers[node]._node
        client: MemoryClient = side.member._zookeeper
        return client

    def lose_answer(self, node: int, number: int) -> None:
        """Let a broker lose its connection to ZooKeeper before the answer to its change of this number, counted from 1."""
        client: Any = self.client_of(node)
        submit, left = client._submit, [number]

        def count(work: Callable[[], Any], *, changes: bool) -> Any:
            left[0] -= changes
            if changes and left[0] == 0:
                client.lose_next_answer()
            return submit(work, changes=changes)

        client._submit = count

    def side(self, node: int) -> ClusterNode:
        """A broker's part in the cluster."""
        side = self.brokers[node]._node
        assert side is not None
        return side

    # Time

    def run(self, work: Coroutine[Deferred[Any], Any, Any] | Deferred[Any], seconds: float = 60) -> Any:
        """Let time pass until *work* is done, and return its result."""
        results: list[Any] = []
        (work if isinstance(work, Deferred) else Deferred.fromCoroutine(work)).addBoth(results.append)
        self.wait(lambda: bool(results), seconds)
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return results[0]

    def wait(self, is_done: Callable[[], bool], seconds: float = 60) -> float:
        """Let time pass until something is so; return how long that took."""
        began = self.clock.seconds()
        for _ in range(int(seconds / TURN_S)):
            if is_done():
                break
            self.turn()
        assert is_done(), f"it is not so after {seconds} s"
        return self.clock.seconds() - began

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(int(seconds / TURN_S)):
            self.turn()

    def turn(self) -> None:
        """Let a moment pass, and check that nobody leads in another's epoch."""
        self.clock.advance(TURN_S)
        for node, broker in self.brokers.items():
            for partition in getattr(broker, "replica_manager", ()):
                if partition.is_leader:
                    key = (partition.log.topic_id, partition.index, partition.leader_epoch)
                    life = (node, self.lives[node])
                    assert self.leaders.setdefault(key, life) == life, (partition, self.leaders[key], life)

    # Requests

    def send(self, node: int, request: Request, timeout_s: float = TIMEOUT_S) -> Deferred[Any]:
        """Send a request from a new client; fires with the answer."""
        self.clients += 1
        connections = BrokerConnections(
            ConnectionSettings("client"), self.network.at(f"client-{self.clients}"), self.clock, Random(9)
        )

        def close(result: Any) -> Any:
            connections.close()
            return result

        address = BrokerAddress(node, f"broker-{node}", PORT)
        return connections.request(address, "client", request, timeout_s=timeout_s).addBoth(close)

    def ask(self, node: int, request: Request) -> Any:
        """Send a request, and wait for the answer."""
        return self.run(self.send(node, request))

    def any_node(self) -> int:
        """A broker that runs."""
        return next(iter(self.brokers))

    def controller(self) -> int:
        """The broker that is the controller by its own account; -1 if there is none."""
        active = [node for node in self.brokers if self.side(node).member._active is not None]
        assert len(active) <= 1, active
        return active[0] if active else -1

    def create(
        self,
        name: str,
        partitions: int = 1,
        replicas: int = 3,
        assignment: Mapping[int, Sequence[int]] | None = None,
        **configs: str,
    ) -> bytes:
        """Create a topic; returns its id."""
        response = self.try_create(name, partitions, replicas, assignment, **configs)
        assert response.error_code == 0, response
        topic_id: bytes = response.topic_id
        self.ids[name] = topic_id
        return topic_id

    def try_create(
        self,
        name: str,
        partitions: int = 1,
        replicas: int = 3,
        assignment: Mapping[int, Sequence[int]] | None = None,
        **configs: str,
    ) -> Any:
        """Send CreateTopics to the controller; returns the answer for the topic."""
        request = self.build_create(name, partitions, replicas, assignment, **configs)
        return self.ask(self.controller(), request).topics[0]

    @staticmethod
    def build_create(
        name: str,
        partitions: int = 1,
        replicas: int = 3,
        assignment: Mapping[int, Sequence[int]] | None = None,
        **configs: str,
    ) -> CreateTopicsRequest:
        """Build a request for one topic."""
        wanted = CreatableTopic(
            name=name,
            num_partitions=-1 if assignment else partitions,
            replication_factor=-1 if assignment else replicas,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(nodes))
                for index, nodes in (assignment or {}).items()
            ],
            configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
        )
        return CreateTopicsRequest(topics=[wanted], timeout_ms=20_000)

    def delete(self, name: str, timeout_ms: int = 20_000) -> int:
        """Delete a topic; returns the error code."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], topic_names=[name], timeout_ms=timeout_ms)
        return int(self.ask(self.controller(), request).responses[0].error_code)

    def describe(self, node: int, name: str) -> Any:
        """Return a topic's metadata as a broker knows it."""
        response = self.ask(
            node, MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        )
        return response.topics[0]

    def leader(self, name: str, index: int = 0, node: int | None = None) -> int:
        """Return the leader that a broker names; -1 without one."""
        partition = self.image(name, index, node)
        return -1 if partition is None else int(partition.leader)

    def image(self, name: str, index: int = 0, node: int | None = None) -> Any:
        """Return what a broker knows of a partition."""
        topic = self.brokers[node or self.any_node()].metadata.image.topics.get(name)
        if topic is None or index >= len(topic.partitions):
            return None
        return topic.partitions[index]

    def in_sync(self, name: str, index: int = 0, node: int | None = None) -> list[int]:
        """Return the in-sync set that a broker names."""
        partition = self.image(name, index, node)
        return [] if partition is None else sorted(partition.in_sync_replicas)

    def wait_for_leader(self, name: str, index: int = 0, *, but: Sequence[int] = (), seconds: float = 60) -> int:
        """Wait until all brokers name the same leader, which leads; return it."""

        def is_led() -> bool:
            leaders = {self.leader(name, index, node) for node in self.brokers}
            leader = next(iter(leaders))
            return (
                len(leaders) == 1
                and leader not in (-1, *but)
                and leader in self.brokers
                and self.partition(leader, name, index).is_leader
            )

        self.wait(is_led, seconds)
        return self.leader(name, index)

    def wait_for_in_sync(self, name: str, wanted: Sequence[int], index: int = 0, seconds: float = 60) -> None:
        """Wait until all brokers name this in-sync set."""
        self.wait(
            lambda: all(self.in_sync(name, index, node) == sorted(wanted) for node in self.brokers),
            seconds,
        )

    def partition(self, node: int, topic: str, index: int = 0) -> Partition:
        """A broker's replica."""
        return self.brokers[node].replica_manager.find(topic, index)

    def build_produce(self, topic: str, value: bytes, acks: int = -1, index: int = 0) -> ProduceRequest:
        """Build a request with one record."""
        now_ms = int(self.clock.seconds() * 1000)
        data = PartitionProduceData(index=index, records=build_batch([(now_ms, b"k", value, [])]))
        return ProduceRequest(
            acks=acks,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=topic, topic_id=self.ids[topic], partition_data=[data])],
        )

    def produce(self, node: int, topic: str, value: bytes, acks: int = -1, index: int = 0) -> Any:
        """Append one record; returns the answer for the partition."""
        answer = self.ask(node, self.build_produce(topic, value, acks, index))
        return answer.responses[0].partition_responses[0]

    def fetch(self, node: int, topic: str, offset: int = 0, index: int = 0) -> Any:
        """Return the answer for the partition, as a consumer gets it."""
        part = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=10,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=topic, topic_id=self.ids[topic], partitions=[part])],
        )
        return self.ask(node, request).responses[0].partitions[0]

    def read(self, node: int, topic: str, offset: int = 0, index: int = 0) -> list[bytes | None]:
        """Return the values that a consumer reads."""
        answer = self.fetch(node, topic, offset, index)
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        return values_of(bytes(answer.records))

    def read_log(self, node: int, topic: str, index: int = 0) -> list[tuple[int, int, bytes | None]]:
        """Return (leader epoch, offset, value) of all records in a replica's log, those that nobody may read yet too."""
        partition = self.partition(node, topic, index)
        opened = partition.log
        if opened.log_start_offset == opened.log_end_offset:
            return []
        region = partition._reader.read_to_end(opened.log_start_offset, 1 << 20, at_least_one_batch=True).region
        assert isinstance(region, FileRegion)
        data = region.pread(0, region.size_bytes)
        region.release()
        return [
            (read_header(batch).partition_leader_epoch, record.offset, record.value)
            for batch in split_batches(data)
            for record in read_records(batch)
        ]


def values_of(records: bytes) -> list[bytes | None]:
    """Return the values of batches."""
    return [record.value for batch in split_batches(records) for record in read_records(batch)]
