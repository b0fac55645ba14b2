"""A whole broker with faults on one clock, and a client that sees the bytes of its responses."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from kafkacompat.broker import Broker
from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import ConnectionSettings
from kafkacompat.faults import Faults
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.compiler import find_reader
from kafkacompat.wire.frames import SIZE
from kafkacompat.wire.headers import ResponseHeader, response_header_version
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.wire.schema import Request
from tests.fakes.memory_host import MemoryHost
from tests.kafkacompat.server.listening import encode_request
from tests.kafkacompat.test_broker_over_memory_network import HOST, PORT, TURN_S, World


class RawClient(Protocol):
    """A connection that keeps every byte; ``correlation_id`` is that of the last request."""

    def __init__(self) -> None:
        self.received = b""
        self.correlation_id = 0
        self.is_closed = False

    def dataReceived(self, data: bytes) -> None:
        self.received += data

    def connectionLost(self, reason: Failure = Failure(ConnectionError())) -> None:  # noqa: B008
        self.is_closed = True

    def leave(self) -> None:
        """Close the connection."""
        transport: Any = self.transport
        transport.loseConnection()

    def send(self, request: Request, version: int) -> None:
        self.correlation_id += 1
        frame = encode_request(request, version, self.correlation_id, client_id="raw")
        transport: Any = self.transport
        transport.send_parts([SIZE.pack(len(frame)) + frame])

    def take_frame(self) -> bytes | None:
        """Remove and return the next frame without its size; None if no whole frame has arrived."""
        if len(self.received) < SIZE.size:
            return None
        end = SIZE.size + SIZE.unpack_from(self.received)[0]
        if len(self.received) < end:
            return None
        frame, self.received = self.received[SIZE.size : end], self.received[end:]
        return frame


class FaultyWorld(World):
    """A broker with ``faults`` and clients that are brokers or raw."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.faults = Faults()
        self.broker = Broker(
            MemoryHost(self.clock, self.network.at(HOST), files=self.files), self.broker.config, faults=self.faults
        )
        self.run(self.broker.start())
        self.topic, self.topic_id, self._topics = "", b"", 0
        self.others: list[BrokerConnections] = []
        self.raw: list[RawClient] = []

    def use_new_topic(self) -> None:
        """Create another topic with two partitions, which is ``topic`` from now on."""
        self._topics += 1
        self.topic = f"t{self._topics}"
        wanted = CreatableTopic(name=self.topic, num_partitions=2, replication_factor=1)
        self.topic_id = self.ask(CreateTopicsRequest(topics=[wanted])).topics[0].topic_id

    def connect(self) -> RawClient:
        client = RawClient()
        self.raw.append(client)
        self.run(self.network.at("client").connect(HOST, PORT, client, 10))
        self.turn()
        return client

    def open(self, client_id: str) -> BrokerConnections:
        opened = BrokerConnections(ConnectionSettings(client_id), self.network.at("broker-2"), self.clock, Random(3))
        self.others.append(opened)
        return opened

    def turn(self, turns: int = 5) -> None:
        """Let some turns pass, in which requests arrive and are answered."""
        for _ in range(turns):
            self.clock.advance(TURN_S)

    def ask_raw(self, request: Request, version: int, client: RawClient | None = None) -> Any:
        """Send a request in a version, and return its response."""
        client = client or self.connect()
        client.send(request, version)
        frame = self.wait_for_frame(client)
        declared = find_api(request.API_KEY).response
        header, position = find_reader(ResponseHeader, response_header_version(declared, version))(memoryview(frame), 0)
        assert header.correlation_id == client.correlation_id
        return find_reader(declared, version)(memoryview(frame), position)[0]

    def wait_for_frame(self, client: RawClient) -> bytes:
        for _ in range(2000):
            frame = client.take_frame()
            if frame is not None:
                return frame
            assert not client.is_closed, "the connection is closed"
            self.clock.advance(TURN_S)
        raise AssertionError("no response arrives")

    def leave(self) -> None:
        """Close the connections of the raw clients."""
        for client in self.raw:
            client.leave()
        self.raw.clear()
        self.turn()

    def end(self) -> None:
        for connections in (self.connections, *self.others):
            connections.close()
        self.run(self.broker.stop())
        assert self.clock.getDelayedCalls() == []


def make_produce(topic: str, *indexes: int, acks: int = -1, value: bytes = b"v") -> ProduceRequest:
    """Return a Produce of one record to each partition, for versions up to 12."""
    batch = build_batch([(1_700_000_000_000, None, value, [])])
    data = [PartitionProduceData(index=index, records=batch) for index in indexes]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)])


def make_fetch(topic: str, *indexes: int, offset: int = 0, max_wait_ms: int = 100, **session: int) -> FetchRequest:
    """Return a Fetch for versions up to 12."""
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20) for index in indexes
    ]
    topics = [FetchTopic(topic=topic, partitions=partitions)] if partitions else []
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=topics, **session)  # type: ignore[arg-type]
