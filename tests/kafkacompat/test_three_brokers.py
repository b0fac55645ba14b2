"""Three whole brokers and ZooKeeper on one clock: without a thread, a socket or a wait."""

from __future__ import annotations

from collections.abc import Coroutine
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.broker import Broker
from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.config import BrokerConfig
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch, read_records, split_batches
from kafkacompat.wire.schema import Request
from kafkacompat.zookeeper.memory import MemoryZooKeeper
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.memory_host import MemoryHost
from tests.fakes.memory_network import MemoryNetwork
from tests.fakes.process_clock import ProcessClock

PORT = 9092
START_S = 1_700_000_000
TURN_S = 0.02
TIMEOUT_S = 30.0
NODES = (1, 2, 3)


class Cluster:
    """Brokers 1 to 3 on hosts of their own, and a client's host."""

    def __init__(self, **properties: str) -> None:
        self.clock = Clock()
        self.clock.advance(START_S)
        self.network = MemoryNetwork(self.clock)
        self.zookeeper = MemoryZooKeeper()
        self.files = {node: MemoryFiles() for node in NODES}
        self.properties = properties
        self.hosts: dict[int, Any] = {}
        self.clocks: dict[int, ProcessClock] = {}
        self.brokers: dict[int, Broker] = {}
        self.clients = 0
        self.ids: dict[str, bytes] = {}
        for node in NODES:
            self.start(node)

    def start(self, node: int) -> None:
        given = {
            "broker.id": str(node),
            "listeners": f"PLAINTEXT://broker-{node}:{PORT}",
            "log.dirs": "/data",
            "zookeeper.connect": "zookeeper/kafka",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2",
            "replica.lag.time.max.ms": "4000",
            **{name.replace("_", "."): value for name, value in self.properties.items()},
        }
        self.hosts[node] = host = self.network.at(f"broker-{node}")
        self.clocks[node] = ProcessClock(self.clock)
        machine = MemoryHost(
            self.clocks[node], host, files=self.files[node], rng=Random(node), zookeeper=self.zookeeper
        )
        self.brokers[node] = Broker(machine, BrokerConfig(given))
        self.run(self.brokers[node].start())

    def kill(self, node: int) -> None:
        """End a broker's process: its connections end, and its session expires."""
        session = self.session_of(node)
        self.hosts[node].kill()
        self.clocks[node].kill()
        self.files[node].crash(lose_unsynced=False)
        self.zookeeper.expire(session)
        del self.brokers[node]

    def session_of(self, node: int) -> int:
        side: Any = self.brokers[node]._node
        session: int = side.member._zookeeper.session_id
        return session

    def run(self, work: Coroutine[Deferred[Any], Any, Any] | Deferred[Any], turns: int = 3000) -> Any:
        results: list[Any] = []
        (work if isinstance(work, Deferred) else Deferred.fromCoroutine(work)).addBoth(results.append)
        for _ in range(turns):
            if results:
                break
            self.clock.advance(TURN_S)
        assert results, "it does not end"
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return results[0]

    def advance(self, seconds: float) -> None:
        for _ in range(int(seconds / TURN_S)):
            self.clock.advance(TURN_S)

    def ask(self, node: int, request: Request) -> Any:
        self.clients += 1
        connections = BrokerConnections(
            ConnectionSettings("client"), self.network.at(f"client-{self.clients}"), self.clock, Random(9)
        )
        address = BrokerAddress(node, f"broker-{node}", PORT)
        answer = self.run(connections.request(address, "client", request, timeout_s=TIMEOUT_S))
        connections.close()
        return answer

    def controller(self) -> int:
        return int(self.ask(next(iter(self.brokers)), MetadataRequest(topics=[])).controller_id)

    def create(self, name: str, partitions: int = 1, replicas: int = 3) -> bytes:
        wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
        response = self.ask(self.controller(), CreateTopicsRequest(topics=[wanted]))
        assert response.topics[0].error_code == 0, response
        topic_id: bytes = response.topics[0].topic_id
        self.ids[name] = topic_id
        return topic_id

    def describe(self, node: int, name: str) -> Any:
        response = self.ask(node, MetadataRequest(topics=[MetadataRequestTopic(name=name)]))
        return response.topics[0]

    def leader(self, name: str, index: int = 0) -> int:
        topic = self.describe(next(iter(self.brokers)), name)
        return int(next(part.leader_id for part in topic.partitions if part.partition_index == index))

    def produce(self, node: int, topic: str, value: bytes, acks: int = -1, index: int = 0) -> Any:
        now_ms = int(self.clock.seconds() * 1000)
        data = PartitionProduceData(index=index, records=build_batch([(now_ms, b"k", value, [])]))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=topic, topic_id=self.ids[topic], partition_data=[data])],
        )
        return self.ask(node, request).responses[0].partition_responses[0]

    def read(self, node: int, topic: str, topic_id: bytes, offset: int = 0, index: int = 0) -> list[bytes | None]:
        part = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=10, max_bytes=1 << 20, topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[part])]
        )
        answer = self.ask(node, request).responses[0].partitions[0]
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        return [record.value for batch in split_batches(bytes(answer.records)) for record in read_records(batch)]


def test_a_topic_is_led_and_followed() -> None:
    cluster = Cluster()
    topic_id = cluster.create("t")
    leader = cluster.leader("t")
    for number in range(3):
        answer = cluster.produce(leader, "t", b"%d" % number)
        assert (answer.error_code, answer.base_offset) == (0, number)
    assert cluster.read(leader, "t", topic_id) == [b"0", b"1", b"2"]
    for node in NODES:
        partition = cluster.brokers[node].replica_manager.find("t", 0)
        assert partition.log.log_end_offset == 3
        assert sorted(cluster.describe(node, "t").partitions[0].isr_nodes) == [1, 2, 3]


def test_nothing_acknowledged_is_lost_when_the_leader_is_killed() -> None:
    cluster = Cluster()
    topic_id = cluster.create("t")
    first = cluster.leader("t")
    for number in range(3):
        assert cluster.produce(first, "t", b"%d" % number).error_code == 0
    cluster.kill(first)
    cluster.advance(2)
    second = cluster.leader("t")
    assert second not in (first, -1)
    assert cluster.produce(second, "t", b"3").error_code == 0
    assert cluster.read(second, "t", topic_id) == [b"0", b"1", b"2", b"3"]
    cluster.start(first)
    cluster.advance(10)
    assert cluster.brokers[first].replica_manager.find("t", 0).log.log_end_offset == 4
    assert sorted(cluster.describe(second, "t").partitions[0].isr_nodes) == [1, 2, 3]


def test_a_partition_with_one_replica_needs_nobody_else() -> None:
    cluster = Cluster(min_insync_replicas="2")
    topic_id = cluster.create("alone", replicas=1)
    leader = cluster.leader("alone")
    for acks, value in ((-1, b"first"), (1, b"second")):
        assert cluster.produce(leader, "alone", value, acks).error_code == 0
    assert cluster.read(leader, "alone", topic_id) == [b"first", b"second"]
