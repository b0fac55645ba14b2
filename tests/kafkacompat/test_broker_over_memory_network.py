"""A whole broker, and requests to it, on one clock: without a thread or a socket, and with its logs in memory."""

from __future__ import annotations

import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.broker import Broker
from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.errors import ConnectionLostError
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.config import BrokerConfig
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.wire.schema import Request
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.memory_host import MemoryHost
from tests.fakes.memory_network import MemoryNetwork

HOST, PORT = "broker-1", 9092
TURNS = 2000
TURN_S = 0.01
TIMEOUT_S = 30.0
MAX_WAIT_MS = 5000


class World:
    """One broker with some properties, and another host that sends requests to it."""

    def __init__(self, folder: Path, properties: Mapping[str, str] | None = None) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.network = MemoryNetwork(self.clock)
        self.files = MemoryFiles()
        config = BrokerConfig(
            {
                "node.id": "1",
                "listeners": f"PLAINTEXT://{HOST}:{PORT}",
                # The metadata is in SQLite, which knows real files only.
                "log.dirs": str(folder),
                # Scrubbing begins with a worker process.
                "kafkacompat.scrub.interval.ms": "-1",
                "offsets.topic.num.partitions": "1",
                **(properties or {}),
            }
        )
        self.broker = Broker(MemoryHost(self.clock, self.network.at(HOST), files=self.files), config)
        self.connections = BrokerConnections(
            ConnectionSettings("broker-2"), self.network.at("broker-2"), self.clock, Random(2)
        )
        self.address = BrokerAddress(1, HOST, PORT)

    def run(self, work: Coroutine[Deferred[Any], Any, Any] | Deferred[Any]) -> Any:
        """Turn the clock until *work* is done; returns its result or raises what it failed with."""
        results: list[Any] = []
        (work if isinstance(work, Deferred) else Deferred.fromCoroutine(work)).addBoth(results.append)
        for _ in range(TURNS):
            if results:
                break
            self.clock.advance(TURN_S)
        assert results, "it does not end"
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return results[0]

    def begin(self, request: Request, purpose: str = "requests") -> Deferred[Any]:
        return self.connections.request(self.address, purpose, request, timeout_s=TIMEOUT_S)

    def ask(self, request: Request) -> Any:
        return self.run(self.begin(request))

    def make_topic(self, name: str) -> bytes:
        """Create a topic of one partition; return its id as Metadata has it."""
        created = self.ask(
            CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])
        )
        assert created.topics[0].error_code == 0
        described = self.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]))
        assert [(node.node_id, node.host, node.port) for node in described.brokers] == [(1, HOST, PORT)]
        assert described.topics[0].partitions[0].leader_id == 1
        return bytes(described.topics[0].topic_id)

    def produce(self, topic: str, topic_id: bytes, value: bytes) -> int:
        batch = build_batch([(int(self.clock.seconds() * 1000), b"k", value, [])])
        partition = PartitionProduceData(index=0, records=batch)
        data = TopicProduceData(name=topic, topic_id=topic_id, partition_data=[partition])
        answered = self.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])).responses[0]
        assert answered.partition_responses[0].error_code == 0
        return int(answered.partition_responses[0].base_offset)


def make_fetch_request(topic: str, topic_id: bytes, offset: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    wanted = FetchTopic(topic=topic, topic_id=topic_id, partitions=[partition])
    return FetchRequest(max_wait_ms=MAX_WAIT_MS, min_bytes=1, topics=[wanted])


def records_of(response: Any) -> bytes:
    (partition,) = response.responses[0].partitions
    assert partition.error_code == 0
    return bytes(partition.records or b"")


def test_requests_reach_a_broker_and_its_responses_come_back(tmp_path: Path) -> None:
    threads = threading.active_count()
    world = World(tmp_path)
    world.run(world.broker.start())
    assert world.broker.addresses == [f"PLAINTEXT://{HOST}:{PORT}"]
    topic_id = world.make_topic("t")
    # The second batch is so large that it is sent from its file.
    large = b"x" * 200_000
    assert [world.produce("t", topic_id, value) for value in (b"small", large)] == [0, 1]
    fetched = world.ask(make_fetch_request("t", topic_id, 0))
    assert b"small" in records_of(fetched) and large in records_of(fetched)
    assert fetched.responses[0].partitions[0].high_watermark == 2
    assert threading.active_count() == threads, threading.enumerate()
    world.connections.close()
    world.run(world.broker.stop())
    assert world.files.locked == set()
    assert world.clock.getDelayedCalls() == []


def test_a_fetch_that_waits_holds_up_nothing_of_another_purpose(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(world.broker.start())
    topic_id = world.make_topic("t")
    waiting = world.begin(make_fetch_request("t", topic_id, 0), "fetch")
    fetched: list[Any] = []
    waiting.addCallback(fetched.append)
    before = world.clock.seconds()
    assert world.produce("t", topic_id, b"news") == 0
    world.run(waiting)
    assert b"news" in records_of(fetched[0])
    assert world.clock.seconds() - before < MAX_WAIT_MS / 1000
    # Without news it is answered when its time is over.
    before = world.clock.seconds()
    assert records_of(world.ask(make_fetch_request("t", topic_id, 1))) == b""
    assert world.clock.seconds() - before >= MAX_WAIT_MS / 1000
    world.run(world.broker.stop())


def test_a_killed_broker_fails_the_requests_to_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(world.broker.start())
    topic_id = world.make_topic("t")
    waiting = world.begin(make_fetch_request("t", topic_id, 0))
    problems: list[Any] = []
    waiting.addErrback(problems.append)
    world.clock.advance(TURN_S)
    world.network.at(HOST).kill()
    world.run(waiting)
    assert problems[0].check(ConnectionLostError)


def test_a_broker_stops_while_a_connection_to_it_is_open(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(world.broker.start())
    world.make_topic("t")
    world.run(world.broker.stop())
    assert world.broker.server.connections == set()
    assert world.network.at(HOST).ports == {}
