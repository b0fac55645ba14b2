"""A single node moves into ZooKeeper: everything it held is there afterwards, and its log directories stay in place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from compat_tests.brokers import ROOT, KafkacompatBroker
from compat_tests.confluent import consumer_of, create_topic, produce
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until
from compat_tests.zookeeper import ZooKeeperServer, ZooKeeperWorld, new_chroot
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse

TOPICS = {"orders": 3, "clicks": 1}
RECORDS = 50


@pytest.fixture
def world(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperWorld]:
    world = ZooKeeperWorld(zookeeper, new_chroot())
    yield world
    world.close()


@pytest.fixture
def node(broker_kind: str, tmp_path: Path) -> Iterator[KafkacompatBroker]:
    if broker_kind != "kafkacompat":
        pytest.skip("this is our command line")
    node = KafkacompatBroker(tmp_path / "node")
    yield node
    node.stop()


def run_command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kafkacompat", "metadata", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def read_values(node: KafkacompatBroker, topic: str, count: int) -> set[str]:
    """Return *count* values of a topic, read by assign()."""
    consumer = consumer_of(node, "reader")
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(TOPICS[topic])])
    values: list[str] = []

    def take() -> bool:
        for message in consumer.consume(count, 0.2):
            assert message.error() is None, message.error()
            values.append(message.value().decode())
        return len(values) >= count

    until(take)
    consumer.close()
    return set(values)


def wait_for_metadata(node: KafkacompatBroker) -> None:
    """Return once the broker's metadata name a broker: a client that asks earlier may wait long before it asks again."""
    request = MetadataRequest(topics=[])
    with RawClient(node.port) as client:
        until(lambda: client.call(request, MetadataResponse, 8).brokers)


def retention_of(node: KafkacompatBroker, topic: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    # The client of the broker's life before reconnects with growing pauses.
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    configs = admin.describe_configs([resource])[resource].result(60)
    return str(configs["retention.ms"].value)


def values_of(topic: str, part: str) -> list[str]:
    return [f"{topic} {part} {number}" for number in range(RECORDS)]


def test_a_single_node_becomes_a_broker_of_a_cluster(
    world: ZooKeeperWorld, node: KafkacompatBroker, tmp_path: Path
) -> None:
    file, connect = tmp_path / "node.jsonl", f"{world.server.connect}{world.chroot}"
    node.start()
    for topic, partitions in TOPICS.items():
        create_topic(node, topic, partitions, retention_ms="86400000")
        produce(node, topic, values_of(topic, "before"))
    refused = run_command("export", file, "--data", node.data_folder)
    assert (refused.returncode, "is in use by a broker" in refused.stderr, file.exists()) == (1, True, False)
    node.stop()

    exported = run_command("export", file, "--data", node.data_folder)
    assert exported.returncode == 0, exported.stderr
    imported = run_command("import", file, "--zookeeper", connect, "--data", node.data_folder)
    assert imported.returncode == 0, imported.stderr
    client = world.connect()
    state, _ = world.run(client.get("/brokers/topics/orders/partitions/2/state"))
    epoch_before = json.loads(state)["leader_epoch"]

    cluster_id = next(word for word in node.stdout().split() if word.startswith("cluster.id="))
    node.change({"zookeeper.connect": connect})
    node.start()
    wait_for_metadata(node)
    for topic in TOPICS:
        assert read_values(node, topic, RECORDS) == set(values_of(topic, "before"))
        acknowledged = produce(node, topic, values_of(topic, "after"), acks="all")
        assert len(acknowledged) == RECORDS
        assert read_values(node, topic, 2 * RECORDS) == {*values_of(topic, "before"), *values_of(topic, "after")}
        assert retention_of(node, topic) == "86400000"
    assert node.stdout().count(cluster_id) == 2
    state, _ = world.run(client.get("/brokers/topics/orders/partitions/2/state"))
    assert json.loads(state)["leader_epoch"] >= epoch_before
    assert not [name for name in os.listdir(node.data_folder) if name.endswith("-stray")]

    again = run_command("import", file, "--zookeeper", connect)
    assert (again.returncode, "brokers 1 are registered" in again.stderr) == (1, True), again.stderr
