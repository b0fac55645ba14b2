"""An instance without room: real producers wait, and send each record once when there is room again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaProducer

from compat_tests.brokers import KafkacompatBroker
from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

INSTANCE = 100
COUNT, VALUE = 60, b"x" * 1000
BATCH_BYTES = 4000
LIMIT_BYTES = 20_000


class World:
    """A broker, seen by its operator, and instances on it whose names are those of clients."""

    def __init__(self, broker: KafkacompatBroker) -> None:
        self.client = RawClient(broker.port)

    def set(self, name: str, **properties: str) -> None:
        configs = [
            AlterableConfig(name=option.replace("_", "."), config_operation=0, value=value)
            for option, value in properties.items()
        ]
        resource = AlterConfigsResource(resource_type=INSTANCE, resource_name=name, configs=configs)
        answer = self.client.call(
            IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse, 1
        )
        assert answer.responses[0].error_code == 0, answer

    def create(self, name: str) -> str:
        """Create an instance with little room, and its topic t; returns the address for its clients."""
        address = f"127.0.0.1:{free_port()}"
        limit = str(LIMIT_BYTES)
        self.set(name, cluster_id=name, secret=name, listeners=f"PLAINTEXT://{address}", limit_storage_bytes=limit)
        wanted = CreatableTopic(name=f"{name}.t", num_partitions=1, replication_factor=1)
        answer = self.client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=9000), CreateTopicsResponse, 4)
        assert answer.topics[0].error_code == 0, answer
        return address

    def end_offset(self, topic: str) -> int:
        wanted = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
        answer = self.client.call(ListOffsetsRequest(replica_id=-1, topics=[wanted]), ListOffsetsResponse, 2)
        return answer.topics[0].partitions[0].offset

    def delete_records(self, topic: str, offset: int) -> int:
        partition = DeleteRecordsPartition(partition_index=0, offset=offset)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=9000)
        answer = self.client.call(request, DeleteRecordsResponse, 1)
        return answer.topics[0].partitions[0].error_code


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with KafkacompatBroker(tmp_path / "broker") as broker:
        yield World(broker)


def send_by_kafka_python(bootstrap: str, topic: str) -> None:
    with_room = KafkaProducer(bootstrap_servers=bootstrap, batch_size=BATCH_BYTES)
    for future in [with_room.send(topic, VALUE) for _ in range(COUNT)]:
        future.get(30)
    with_room.close()


def send_by_librdkafka(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "batch.size": BATCH_BYTES, "enable.idempotence": True})
    errors: list[Any] = []
    for _ in range(COUNT):
        producer.produce(topic, VALUE, on_delivery=lambda error, _: errors.append(error) if error else None)
    assert producer.flush(30) == 0 and errors == []


def send_by_aiokafka(bootstrap: str, topic: str) -> None:
    async def send() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, max_batch_size=BATCH_BYTES, enable_idempotence=True
        ) as producer:
            await asyncio.gather(*[await producer.send(topic, VALUE) for _ in range(COUNT)])

    asyncio.run(asyncio.wait_for(send(), 30))


def test_producers_wait_for_room_and_send_each_record_once(world: World) -> None:
    clients: dict[str, Callable[[str, str], None]] = {
        "kafka-python": send_by_kafka_python,
        "librdkafka": send_by_librdkafka,
        "aiokafka": send_by_aiokafka,
    }
    addresses = {name: world.create(name) for name in clients}
    topics = {name: f"{name}.t" for name in clients}
    with ThreadPoolExecutor(len(clients)) as pool:
        sending: dict[str, Future[None]] = {
            name: pool.submit(send, addresses[name], "t") for name, send in clients.items()
        }
        room = LIMIT_BYTES // len(VALUE)
        until(lambda: all(world.end_offset(topic) >= room - 1 for topic in topics.values()), timeout_seconds=20)
        assert not any(sent.done() for sent in sending.values())
        # Deleting goes on, though only whole segments make room.
        assert [world.delete_records(topic, 5) for topic in topics.values()] == [0, 0, 0]
        assert all(world.end_offset(topic) < COUNT for topic in topics.values())
        for name in clients:
            world.set(name, limit_storage_bytes="-1")
        for sent in sending.values():
            sent.result(30)
    assert {name: world.end_offset(topic) for name, topic in topics.items()} == dict.fromkeys(clients, COUNT)
