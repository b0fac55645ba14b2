"""The znodes of Apache Kafka 3.9.1, node by node against this project's own values, and Kafka's reaction to znodes of ours."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from compat_tests.brokers import Broker, Kafka28Broker, OldKafkaBroker
from compat_tests.java_tools import SHORT_LIVED, java_command, run_java
from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import format_client_values, parse_client_values
from kafkacompat.metadata.codec import decode_store
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.store import StoreEntry
from kafkacompat.metadata.store_changes import StoreForm
from kafkacompat.metadata.znodes import administration, brokers, cluster, configs, consumers, security, topics
from kafkacompat.metadata.znodes.paths import (
    ACL_PATHS,
    PERSISTENT_PATHS,
    TOKEN_PATHS,
    Znode,
    identify_path,
    parse_sequence_number,
)
from kafkacompat.metadata.znodes.values import parse_fields
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkacompat.wire.primitives import ZERO_UUID

pytestmark = pytest.mark.tools

ACL_TOOL = "kafka.admin.AclCommand"
CONFIG_TOOL = "kafka.admin.ConfigCommand"
ELECTION_TOOL = "org.apache.kafka.tools.LeaderElectionCommand"
PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
REASSIGNMENT_TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TOPIC_TOOL = "org.apache.kafka.tools.TopicCommand"

GHOST = 3
"""Id of a broker that is registered, but does not exist."""


class Node(NamedTuple):
    """A znode's value and those parts of its stat that Kafka uses."""

    value: bytes
    version: int
    czxid: int
    is_ephemeral: bool


class ZooKeeper:
    """One server of the jars of Kafka 3.9.1, and a client of it."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        main_class = "org.apache.zookeeper.server.ZooKeeperServerMain"
        jvm = (*SHORT_LIVED, "-Dzookeeper.admin.enableServer=false")
        command = java_command(main_class, [str(port), str(folder)], pom=OldKafkaBroker.POM, jvm=jvm)
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = KazooClient(self.address)
        self.client.start(timeout=60)

    def read_tree(self, path: str = "/") -> dict[str, Node]:
        """Return all znodes from *path* down, except ZooKeeper's own."""
        try:
            value, stat = self.client.get(path)
            children = self.client.get_children(path)
        except NoNodeError:
            return {}
        nodes = {path: Node(value or b"", stat.version, stat.czxid, stat.ephemeralOwner != 0)}
        for child in children:
            if path != "/" or child != "zookeeper":
                nodes.update(self.read_tree(f"{path.rstrip('/')}/{child}"))
        return nodes

    def read_json(self, path: str) -> Any:
        """Return the JSON value of a znode; None if there is no such znode or value."""
        try:
            value, _ = self.client.get(path)
        except NoNodeError:
            return None
        return json.loads(value) if value else None

    def stop(self) -> None:
        self.client.stop()
        self.client.close()
        self._process.kill()
        self._process.wait()


class ClusterBroker(OldKafkaBroker):
    """A broker of Kafka 3.9.1 on a ZooKeeper that it shares with others."""

    def __init__(self, folder: Path, node_id: int, zookeeper: ZooKeeper) -> None:
        properties = {
            "broker.id": str(node_id),
            "broker.rack": f"rack{node_id}",
            "zookeeper.connect": zookeeper.address,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            "super.users": "User:ANONYMOUS",
            "delegation.token.secret.key": "secret",
            "auto.leader.rebalance.enable": "false",
        }
        super().__init__(folder, properties)

    def start(self, timeout_seconds: float = 120) -> float:
        """Start without a ZooKeeper of its own."""
        return Broker.start(self, timeout_seconds)


class Cluster:
    """Two brokers on one ZooKeeper, and the tools of their release."""

    def __init__(self, folder: Path) -> None:
        self.zookeeper = ZooKeeper(folder / "zookeeper")
        self.brokers = [ClusterBroker(folder / f"broker-{node_id}", node_id, self.zookeeper) for node_id in (1, 2)]
        self._folder = folder

    def start(self) -> None:
        for broker in self.brokers:
            broker.start()

    def stop(self) -> None:
        for broker in self.brokers:
            broker.stop()
        self.zookeeper.stop()

    def run(self, tool: str, *arguments: str) -> str:
        command = ["--bootstrap-server", self.brokers[0].bootstrap, *arguments]
        return run_java(tool, command, pom=OldKafkaBroker.POM).stdout

    def configure(self, *arguments: str) -> None:
        self.run(CONFIG_TOOL, "--alter", *arguments)

    def reassign(self, step: str, replicas: Mapping[str, list[int]], *options: str) -> str:
        """Run kafka-reassign-partitions for the first partitions of topics."""
        file = self._folder / "reassignment.json"
        partitions = [{"topic": topic, "partition": 0, "replicas": nodes} for topic, nodes in replicas.items()]
        file.write_text(json.dumps({"version": 1, "partitions": partitions}))
        return self.run(REASSIGNMENT_TOOL, step, "--reassignment-json-file", str(file), *options)

    def produce(self, topic: str) -> None:
        options = ["--topic", topic, "--num-records", "10", "--record-size", "10", "--throughput", "-1"]
        properties = ["--producer-props", f"bootstrap.servers={self.brokers[0].bootstrap}"]
        run_java(PRODUCER, [*options, *properties], pom=OldKafkaBroker.POM)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a cluster on which every kind of change has been made once, by Kafka's own tools."""
    cluster = Cluster(tmp_path_factory.mktemp("znodes"))
    try:
        cluster.start()
        change_topics(cluster)
        change_configs(cluster)
        change_acls(cluster)
        commit_offset(cluster)
        cluster.produce("orders")
        yield cluster
    finally:
        cluster.stop()


def change_topics(kafka: Cluster) -> None:
    """Create, grow, delete and reassign topics, and elect preferred leaders."""
    kafka.run(
        TOPIC_TOOL, "--create", "--topic", "orders", "--replica-assignment", "1:2,2:1", "--config", "retention.ms=9"
    )
    kafka.run(TOPIC_TOOL, "--create", "--topic", "plain", "--replica-assignment", "1")
    kafka.run(TOPIC_TOOL, "--create", "--topic", "gone", "--replica-assignment", "1:2")
    kafka.run(TOPIC_TOOL, "--alter", "--topic", "orders", "--partitions", "3")
    kafka.run(TOPIC_TOOL, "--delete", "--topic", "gone")
    kafka.reassign("--execute", {"plain": [2]})
    until(lambda: "is completed" in kafka.reassign("--verify", {"plain": [2]}), timeout_seconds=60)
    kafka.reassign("--execute", {"orders": [2, 1]})
    kafka.run(ELECTION_TOOL, "--election-type", "preferred", "--topic", "orders", "--partition", "0")
    until(lambda: "/brokers/topics/gone" not in kafka.zookeeper.read_tree("/brokers/topics"))


def change_configs(kafka: Cluster) -> None:
    """Change configs of each kind of entity, and take some away again."""
    kafka.configure("--topic", "plain", "--add-config", "retention.ms=1000,cleanup.policy=[compact,delete]")
    kafka.configure("--topic", "plain", "--delete-config", "retention.ms,cleanup.policy")
    kafka.configure("--broker", "1", "--add-config", "leader.replication.throttled.rate=1000")
    kafka.configure("--broker-defaults", "--add-config", "max.connections=1000")
    kafka.configure("--user", "alice", "--add-config", "producer_byte_rate=1000,request_percentage=12.5")
    kafka.configure("--user", "alice", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")
    kafka.configure("--user", "b c*~/d", "--client-defaults", "--add-config", "consumer_byte_rate=1024")
    kafka.configure("--user-defaults", "--add-config", "consumer_byte_rate=2048")
    kafka.configure("--user", "carol", "--client", "c", "--add-config", "consumer_byte_rate=1024")
    kafka.configure("--user", "carol", "--client", "c", "--delete-config", "consumer_byte_rate")
    kafka.configure("--client", "c", "--add-config", "producer_byte_rate=99")
    kafka.configure("--ip", "10.0.0.1", "--add-config", "connection_creation_rate=5")


def change_acls(kafka: Cluster) -> None:
    """Add an ACL of each kind of pattern."""
    for pattern in ("literal", "prefixed"):
        words = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
        kafka.run(ACL_TOOL, "--add", *words, "--resource-pattern-type", pattern)


def commit_offset(kafka: Cluster) -> None:
    """Commit an offset by version 0, which Kafka keeps in ZooKeeper."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    request = OffsetCommitRequest(group_id="a group", topics=[topic])
    with RawClient(kafka.brokers[0].port) as client:
        answer = client.call(request, OffsetCommitResponse, 0)
    assert answer.topics[0].partitions[0].error_code == 0


# Each function decodes a znode of Kafka and encodes the result again.


def recode_broker(path: str, names: Mapping[str, str], node: Node) -> bytes:
    assert node.is_ephemeral
    node_id = int(names["node_id"])
    broker, home = brokers.decode_broker(node_id, node.value, node.czxid), brokers.decode_home(node_id, node.value)
    return brokers.encode_broker(broker, int(json.loads(node.value)["timestamp"]), home=home)


def recode_controller(path: str, names: Mapping[str, str], node: Node) -> bytes:
    assert node.is_ephemeral
    registration = cluster.decode_controller(node.value)
    assert registration.node_id in (1, 2) and not registration.is_kraft
    return cluster.encode_controller(registration.node_id, int(json.loads(node.value)["timestamp"]))


def recode_topic(path: str, names: Mapping[str, str], node: Node) -> bytes:
    topic_id, assignments = topics.decode_topic(names["topic"], node.value)
    partitions = (
        PartitionImage(index, 0, 0, replicas, (), 0, adding, removing)
        for index, (replicas, adding, removing) in enumerate(assignments)
    )
    return topics.encode_topic(TopicImage(names["topic"], topic_id, tuple(partitions)))


def recode_state(path: str, names: Mapping[str, str], node: Node) -> bytes:
    state = topics.decode_partition_state(names["topic"], int(names["partition"]), node.value)
    partition = PartitionImage(
        int(names["partition"]),
        state.leader,
        state.leader_epoch,
        (),
        state.in_sync_replicas,
        node.version,
        is_recovering=state.is_recovering,
    )
    return topics.encode_partition_state(names["topic"], partition, state.controller_epoch)


def recode_config(path: str, names: Mapping[str, str], node: Node) -> bytes:
    values = configs.decode_config(path, node.value)
    if names.get("kind") in ("users", "clients", "ips") or "client_id" in names:
        values = format_client_values(parse_client_values(values))
    return configs.encode_config(path, values) if node.value else b""


def recode_config_change(path: str, names: Mapping[str, str], node: Node) -> bytes:
    assert parse_sequence_number(Znode.CONFIG_CHANGE, path) >= 0
    return configs.encode_config_change(configs.decode_config_change(path, node.value))


def recode_producer_ids(path: str, names: Mapping[str, str], node: Node) -> bytes:
    next_id = cluster.decode_next_producer_id(node.value)
    return cluster.encode_producer_ids(json.loads(node.value)["broker"], range(next_id - 1000, next_id))


def recode_rules(path: str, names: Mapping[str, str], node: Node) -> bytes:
    pattern = security.parse_acl_key(path)
    assert pattern is not None and security.format_acl_key(pattern) == path
    return security.encode_rules(path, security.read_rules(parse_fields(path, node.value)))


RECODERS: dict[Znode, Callable[[str, Mapping[str, str], Node], bytes]] = {
    Znode.ACLS: recode_rules,
    Znode.ACL_CHANGE: lambda path, _, node: security.encode_acl_change(security.decode_acl_change(path, node.value)),
    Znode.BROKER: recode_broker,
    Znode.CLIENT_OF_USER: recode_config,
    Znode.CLUSTER_ID: lambda _, __, node: cluster.encode_cluster_id(cluster.decode_cluster_id(node.value)),
    Znode.CONFIG: recode_config,
    Znode.CONFIG_CHANGE: recode_config_change,
    Znode.CONSUMER_OFFSET: lambda path, _, node: consumers.encode_consumer_offset(
        consumers.decode_consumer_offset(path, node.value)
    ),
    Znode.CONTROLLER: recode_controller,
    Znode.CONTROLLER_EPOCH: lambda _, __, node: cluster.encode_controller_epoch(
        cluster.decode_controller_epoch(node.value)
    ),
    Znode.EXTENDED_ACLS: recode_rules,
    Znode.EXTENDED_ACL_CHANGE: lambda path, _, node: security.encode_acl_change(
        security.decode_acl_change(path, node.value)
    ),
    Znode.FEATURE: lambda _, __, node: cluster.encode_features(cluster.decode_features(node.value)),
    Znode.PARTITION_STATE: recode_state,
    Znode.PRODUCER_IDS: recode_producer_ids,
    Znode.REASSIGNMENT: lambda _, __, node: administration.encode_reassignment(
        administration.decode_reassignment(node.value)
    ),
    Znode.TOPIC: recode_topic,
}


def compare_tree(tree: Mapping[str, Node]) -> set[Znode]:
    """Compare each znode's value with our encoding of it; returns the kinds of znodes with a value."""
    seen: set[Znode] = set()
    for path, node in tree.items():
        znode, names = identify_path(path) or (None, {})
        if not node.value:
            assert znode is not None or any(other.startswith(path) for other in PERSISTENT_AND_OPTIONAL), path
        else:
            assert znode is not None, path
            recoded = RECODERS[znode](path, names, node)
            assert parse_value(recoded) == parse_value(node.value), path
            seen.add(znode)
    return seen


PERSISTENT_AND_OPTIONAL = (
    *PERSISTENT_PATHS,
    *ACL_PATHS,
    *TOKEN_PATHS,
    "/cluster/id",
    "/consumers/a group/offsets/orders/0",
)


def parse_value(value: bytes) -> Any:
    """Parse JSON; other values are compared as they are."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def test_our_encoding_of_every_znode_equals_kafkas(kafka: Cluster) -> None:
    seen = compare_tree(kafka.zookeeper.read_tree())
    assert seen == RECODERS.keys() - {Znode.REASSIGNMENT}


def test_a_start_creates_the_persistent_paths_in_this_order(kafka: Cluster) -> None:
    tree = kafka.zookeeper.read_tree()
    assert sorted(PERSISTENT_PATHS, key=lambda path: tree[path].czxid) == list(PERSISTENT_PATHS)
    assert set(ACL_PATHS) | set(TOKEN_PATHS) <= tree.keys()
    kinds = {"/config/changes", *(path for path in PERSISTENT_PATHS if path.startswith("/config/"))}
    assert {path for path in tree if path.startswith("/config/") and path.count("/") == 2} == kinds


def test_removals_leave_the_same_znodes_as_kafkas(kafka: Cluster) -> None:
    tree = kafka.zookeeper.read_tree()
    assert json.loads(tree["/config/topics/plain"].value) == {"version": 1, "config": {}}
    assert "/config/users/carol" not in tree
    assert "/config/topics/gone" not in tree and "/admin/delete_topics/gone" not in tree
    assert tree["/config/users/b%20c%2A%7E%2Fd"].value == b""
    assert tree["/config/users/b%20c%2A%7E%2Fd/clients"].value == b""


def test_a_draft_of_kafka_s_image_writes_kafka_s_tree(kafka: Cluster) -> None:
    """Everything below /brokers/topics and /config that Kafka wrote comes out of an image again, and nothing else."""
    tree = kafka.zookeeper.read_tree()
    entries = {path: StoreEntry(node.value, node.version) for path, node in tree.items()}
    image, foreign = decode_store(entries)
    assert foreign == {}
    assert {topic: len(topic_image.partitions) for topic, topic_image in image.topics.items()} == {
        "orders": 3,
        "plain": 1,
    }
    draft = MetadataDraft(MetadataImage())
    for name, topic in image.topics.items():
        draft.put_topic(topic)
        draft.put_config((ResourceType.TOPIC, name), image.config(ResourceType.TOPIC, name))
    # The removal of a throttle left broker 2 without configs, but with an empty value.
    for name in ("", "1", "2"):
        draft.put_config((ResourceType.BROKER, name), image.config(ResourceType.BROKER, name))
    for entity, config in image.clients.items():
        draft.put_client(entity, config)
    epoch = cluster.decode_controller_epoch(tree["/controller_epoch"].value)
    written = {
        change.key: parse_value(change.value or b"") for change in draft.list_changes({}, form=StoreForm(epoch, True))
    }
    folders = ("/brokers/topics/", "/config/")
    kafka_wrote = {
        path: parse_value(node.value)
        for path, node in tree.items()
        if node.value and path.startswith(folders) and not path.startswith("/config/changes/")
    }
    assert written == kafka_wrote


def test_a_reassignment_that_waits_for_a_broker_of_ours(kafka: Cluster) -> None:
    """Kafka accepts a registration of ours; a reassignment of ours to that broker stays in progress, as it is no broker."""
    zookeeper, client = kafka.zookeeper, kafka.zookeeper.client
    endpoints = {"PLAINTEXT": ("127.0.0.1", free_port())}
    ghost = BrokerImage(GHOST, "rack3", endpoints, -1, {"PLAINTEXT": "PLAINTEXT"})
    # Kafka has to ignore the field of our own.
    home = brokers.ProcessHome(frozenset(("AAECAwQFBgcICQoLDA0ODw",)), "9a3c1f0e-7f5b-4a55-8d0c-2f4c5e1d7b11")
    value = brokers.encode_broker(ghost, 1_700_000_000_000, home=home)
    client.create(Znode.BROKER.path(node_id=GHOST), value, ephemeral=True)
    admin = AdminClient({"bootstrap.servers": kafka.brokers[0].bootstrap})
    until(lambda: GHOST in admin.list_topics(timeout=30).brokers, timeout_seconds=60)
    client.create(Znode.REASSIGNMENT.path(), administration.encode_reassignment({("plain", 0): [GHOST]}))

    def stored() -> Any:
        return zookeeper.read_json("/brokers/topics/plain")

    until(lambda: stored()["adding_replicas"], timeout_seconds=60)
    tree = zookeeper.read_tree()
    assert Znode.REASSIGNMENT in compare_tree(tree)
    image, _ = decode_store({path: StoreEntry(node.value, node.version) for path, node in tree.items()})
    (partition,) = image.topics["plain"].partitions
    assert (set(partition.replicas), partition.adding_replicas, partition.removing_replicas) == ({2, 3}, (3,), (2,))
    kafka.reassign("--cancel", {"plain": [GHOST]}, "--preserve-throttles")
    until(lambda: not stored()["adding_replicas"], timeout_seconds=60)
    until(lambda: not client.exists(Znode.REASSIGNMENT.path()), timeout_seconds=60)
    client.delete(Znode.BROKER.path(node_id=GHOST))
    until(lambda: GHOST not in admin.list_topics(timeout=30).brokers, timeout_seconds=60)


def test_kafka_carries_out_the_requests_of_our_znodes(kafka: Cluster) -> None:
    """A topic of ours gets its id and states; its configs, its election and its deletion have their effect."""
    zookeeper, client = kafka.zookeeper, kafka.zookeeper.client
    partition = PartitionImage(0, 0, 0, (1, 2), (), 0)
    topic = TopicImage("ours", ZERO_UUID, (partition, partition._replace(partition=1, replicas=(2, 1))))
    path = Znode.CONFIG.path(kind="topics", name="ours")
    client.create(path, configs.encode_config(path, {"retention.ms": "5000"}))
    client.create(Znode.TOPIC.path(topic="ours"), topics.encode_topic(topic))
    until(lambda: zookeeper.read_json(Znode.PARTITION_STATE.path(topic="ours", partition=1)), timeout_seconds=60)
    until(lambda: "topic_id" in zookeeper.read_json(Znode.TOPIC.path(topic="ours")), timeout_seconds=60)
    compare_tree(zookeeper.read_tree())

    client.set(path, configs.encode_config(path, {"retention.ms": "6000"}))
    client.create(Znode.CONFIG_CHANGE.path(sequence=""), configs.encode_config_change(path), sequence=True)
    until(lambda: "retention.ms=6000" in kafka.run(CONFIG_TOOL, "--describe", "--topic", "ours"), timeout_seconds=60)

    request = b'{"version":1,"partitions":[{"topic":"ours","partition":0}]}'
    assert administration.decode_preferred_election(request) == {("ours", 0)}
    client.create(Znode.PREFERRED_ELECTION.path(), request)
    until(lambda: not client.exists(Znode.PREFERRED_ELECTION.path()), timeout_seconds=60)

    client.create(Znode.DELETED_TOPIC.path(topic="ours"))
    until(lambda: not client.exists(Znode.TOPIC.path(topic="ours")), timeout_seconds=60)
    until(lambda: not client.exists(Znode.DELETED_TOPIC.path(topic="ours")), timeout_seconds=60)
    assert not client.exists(path)


def test_the_tree_of_2_8_is_read(tmp_path: Path) -> None:
    """Kafka 2.8 writes older versions of some values."""
    with Kafka28Broker(tmp_path / "kafka") as broker:
        topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        with RawClient(broker.port) as client:
            answer = client.call(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 5)
        assert answer.topics[0].error_code == 0
        address = broker.properties["zookeeper.connect"]
        zookeeper = KazooClient(address)
        zookeeper.start(timeout=60)
        try:
            until(lambda: zookeeper.exists(Znode.PARTITION_STATE.path(topic="t", partition=1)))
            values = {
                znode: zookeeper.get(znode.path()) for znode in (Znode.CONTROLLER, Znode.FEATURE, Znode.CLUSTER_ID)
            }
            broker_value, stat = zookeeper.get(Znode.BROKER.path(node_id=1))
            topic_value, _ = zookeeper.get(Znode.TOPIC.path(topic="t"))
        finally:
            zookeeper.stop()
            zookeeper.close()
    assert cluster.decode_controller(values[Znode.CONTROLLER][0]).node_id == 1
    assert cluster.decode_features(values[Znode.FEATURE][0]).is_enabled
    image = brokers.decode_broker(1, broker_value, stat.czxid)
    assert image.endpoints == {"PLAINTEXT": ("127.0.0.1", broker.port)} and image.epoch > 0
    assert topics.decode_topic("t", topic_value).partitions == (topics.Assignment((1,)),) * 2
