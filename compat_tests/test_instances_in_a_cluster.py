"""An instance of a cluster with a real ZooKeeper: it moves to another group of brokers under load, and its old broker dies."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers import ROOT
from compat_tests.clusters import KafkacompatCluster
from compat_tests.instances import alter_instance, list_properties
from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until

GROUPS = "east:1,west:2"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "shop.alice",
    "sasl.password": "s",
}
RECORDS = 400
LONGEST_S = 30


class SaslCluster(KafkacompatCluster):
    """A cluster whose brokers have a listener with SASL besides; ``logins`` is its bootstrap.servers."""

    def __init__(self, folder: Path) -> None:
        jaas = f'{PLAIN_MODULE} required user_shop.alice="s";'
        sasl = {"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": jaas}
        own = {"kafkacompat.broker.groups": GROUPS, "zookeeper.session.timeout.ms": "3000"}
        super().__init__(folder, {**sasl, **own})
        ports = {node: free_port() for node in self.brokers}
        self.logins = ",".join(f"127.0.0.1:{port}" for port in ports.values())
        for node, broker in self.brokers.items():
            listeners = f"PLAINTEXT://{broker.bootstrap},SASL_PLAINTEXT://127.0.0.1:{ports[node]}"
            broker.properties = {**broker.properties, "listeners": listeners}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SaslCluster]:
    with SaslCluster(tmp_path) as running:
        yield running


def run_command(*words: str) -> str:
    command = [sys.executable, "-m", "kafkacompat", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_instance(cluster: SaslCluster) -> None:
    with RawClient(cluster.brokers[3].port) as client:
        properties = list_properties("shop", free_port(), {"sasl.users": "*", "placement.group": "east"})
        del properties["listeners"]
        alter_instance(client, "shop", properties)
    wait_until_known(cluster)


def wait_until_known(cluster: SaslCluster) -> None:
    """Return when every broker serves the instance's user as one of the instance: until then it is a user of the cluster."""

    def find_cluster_id(bootstrap: str, login: dict[str, str]) -> str:
        return str(AdminClient({"bootstrap.servers": bootstrap, **login}).list_topics(timeout=LONGEST_S).cluster_id)

    physical = find_cluster_id(cluster.bootstrap, {})
    until(lambda: all(find_cluster_id(address, LOGIN) != physical for address in cluster.logins.split(",")))


class SteadyProducer:
    """Sends a record every few milliseconds, and counts those that fail."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **LOGIN})
        self.acknowledged = 0
        self.failed: list[str] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in range(RECORDS):
            self._producer.produce("orders", value=str(number), on_delivery=self._note)
            self._producer.poll(0.01)
        self._producer.flush(LONGEST_S)

    def _note(self, error: object, _: object) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.failed.append(str(error))

    def wait(self) -> None:
        self._thread.join(LONGEST_S)


def read_all(bootstrap: str) -> list[int]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "readers", **LOGIN}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition("orders", 0, OFFSET_BEGINNING)])
    values: list[int] = []

    def has_all() -> bool:
        values.extend(int(message.value()) for message in consumer.consume(RECORDS, 0.2) if message.error() is None)
        return len(values) >= RECORDS

    try:
        until(has_all, timeout_seconds=LONGEST_S)
    finally:
        consumer.close()
    return values


def test_an_instance_moves_under_load_and_outlives_its_old_broker(cluster: SaslCluster) -> None:
    make_instance(cluster)
    admin = AdminClient({"bootstrap.servers": cluster.logins, **LOGIN})
    for future in admin.create_topics([NewTopic("orders", 1, 1, config={"min.insync.replicas": "1"})]).values():
        future.result(LONGEST_S)

    def find_leader() -> int:
        topic = admin.list_topics("orders", timeout=LONGEST_S).topics["orders"]
        return int(topic.partitions[0].leader) if topic.partitions else -1

    until(lambda: find_leader() == 1)
    producer = SteadyProducer(cluster.logins)
    until(lambda: producer.acknowledged > 0)
    run_command("instances", "move", "--bootstrap-server", cluster.bootstrap, "--instance", "shop", "--to", "west")
    until(lambda: find_leader() == 2, timeout_seconds=LONGEST_S)
    producer.wait()
    assert (producer.failed, producer.acknowledged) == ([], RECORDS)
    assert read_all(cluster.logins) == list(range(RECORDS))
    # The broker of the old group holds nothing of the instance, and a broker outside both groups is not needed.
    assert not list(cluster.brokers[1].data_folder.glob("shop.orders-0"))
    cluster.kill(1)
    assert read_all(cluster.logins) == list(range(RECORDS))
