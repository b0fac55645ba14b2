"""Two instances on one node, each with three real clients, the same topic and the same group."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compat_tests.brokers import Broker, KafkacompatBroker
from compat_tests.java_tools import java_command
from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOPIC, GROUP = "orders", "readers"
INSTANCE = 100


@pytest.fixture(autouse=True)
def _only_ours(broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("Kafka has no instances")


def create_instance(node: Broker, name: str) -> str:
    """Create an instance with one listener; return its address."""
    address = f"127.0.0.1:{free_port()}"
    properties = {"cluster.id": f"{name}-cluster", "secret": f"{name}-secret", "listeners": f"PLAINTEXT://{address}"}
    configs = [AlterableConfig(name=option, config_operation=0, value=value) for option, value in properties.items()]
    resource = AlterConfigsResource(resource_type=INSTANCE, resource_name=name, configs=configs)
    with RawClient(node.port) as client:
        answer = client.call(
            IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse, version=1
        )
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message
    return address


def produce(address: str, name: str) -> None:
    """Produce a value by kafka-python, and one by librdkafka."""
    python: Any = KafkaProducer(bootstrap_servers=address)
    python.send(TOPIC, f"{name} by kafka-python".encode()).get(20)
    python.close()
    confluent = Producer({"bootstrap.servers": address})
    confluent.produce(TOPIC, f"{name} by librdkafka")
    assert confluent.flush(20) == 0


def begin_java(address: str) -> subprocess.Popen[str]:
    """Begin to read two values by the console consumer."""
    options = ("--group", "java", "--from-beginning", "--max-messages", "2", "--timeout-ms", "20000")
    arguments = ["--bootstrap-server", address, "--topic", TOPIC, *options]
    return subprocess.Popen(java_command(CONSOLE_CONSUMER, arguments), stdout=subprocess.PIPE, text=True)


def read_by_librdkafka(address: str) -> list[str]:
    """Read two values in a group, and commit."""
    settings = {"bootstrap.servers": address, "group.id": GROUP, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    values: list[str] = []

    def has_read() -> bool:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            values.append(bytes(message.value() or b"").decode())
        return len(values) == 2

    until(has_read)
    consumer.commit(asynchronous=False)
    consumer.close()
    return sorted(values)


def find_committed_by_python(address: str) -> tuple[set[str], int | None]:
    """Return the topics that kafka-python sees, and the offset that the group has committed."""
    consumer: Any = KafkaConsumer(bootstrap_servers=address, group_id=GROUP, enable_auto_commit=False)
    seen = consumer.topics(), consumer.committed(TopicPartition(TOPIC, 0))
    consumer.close()
    return seen


def test_three_clients_of_each_instance_see_their_own_topics_and_groups(tmp_path: Path) -> None:
    with KafkacompatBroker(tmp_path / "node", {"group.initial.rebalance.delay.ms": "0"}) as node:
        addresses = {name: create_instance(node, name) for name in ("shop", "bank")}
        for name, address in addresses.items():
            produce(address, name)
        processes = {name: begin_java(address) for name, address in addresses.items()}
        expected = {name: [f"{name} by kafka-python", f"{name} by librdkafka"] for name in addresses}
        assert read_by_librdkafka(addresses["shop"]) == expected["shop"]
        assert find_committed_by_python(addresses["shop"]) == ({TOPIC}, 2)
        # The group of the same name in the other instance has read nothing.
        assert find_committed_by_python(addresses["bank"]) == ({TOPIC}, None)
        assert read_by_librdkafka(addresses["bank"]) == expected["bank"]
        for name, process in processes.items():
            printed, _ = process.communicate(timeout=60)
            assert sorted(printed.split("\n")[:-1]) == expected[name]
        with RawClient(node.port) as client:
            described = client.call(MetadataRequest(topics=None), MetadataResponse, version=9)
        assert {"shop.orders", "bank.orders"} <= {topic.name for topic in described.topics}
