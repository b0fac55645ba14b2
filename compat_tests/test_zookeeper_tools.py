"""The tools of Apache Kafka 2.8.2, 0.11.0.3 and 0.8.2.2 that know nothing but ZooKeeper, and the consumer of 0.8, on three brokers.

Each one's effect is read from a broker, or by kazoo and zkCli from ZooKeeper. That the tools end with 0 says little: they only write
to ZooKeeper, and the controller does the rest.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from compat_tests.batches import build
from compat_tests.brokers import Broker, KafkacompatBroker
from compat_tests.java_tools import POM as KAFKA_POM
from compat_tests.java_tools import java_command, run_java
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.waiting import until
from compat_tests.zookeeper import ZooKeeperServer, new_chroot
from kafkacompat.wire.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.java_hash import partition_for_key

JAVA = Path(__file__).resolve().parent / "java"
POMS = {
    "2.8.2": JAVA / "tools_2_8" / "pom.xml",
    "0.11.0.3": JAVA / "tools_0_11" / "pom.xml",
    "0.8.2.2": JAVA / "tools_0_8_2" / "pom.xml",
}
ZKCLI_POM = JAVA / "kafka_3_9" / "pom.xml"
NODES = (1, 2, 3)

TOPICS = "kafka.admin.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
REASSIGN = "kafka.admin.ReassignPartitionsCommand"
ELECT = "kafka.admin.PreferredReplicaLeaderElectionCommand"

every_release = pytest.mark.parametrize("release", POMS)
newer_releases = pytest.mark.parametrize("release", ["2.8.2", "0.11.0.3"])


class Cluster:
    """Three brokers below a chroot of ZooKeeper, and readers of their data."""

    def __init__(self, zookeeper: str, brokers: Sequence[Broker], kazoo: KazooClient) -> None:
        self.zookeeper = zookeeper
        self.brokers = brokers
        self.kazoo = kazoo

    def tool(self, release: str, main_class: str, *arguments: str, **options: Any) -> str:
        """Run a tool to its end; a non-zero exit fails the test."""
        return run_java(main_class, ["--zookeeper", self.zookeeper, *arguments], pom=POMS[release], **options).stdout

    def describe(self, topic: str, node: int = 1) -> dict[int, Any]:
        """Return a topic's partitions as a broker names them; none while it does not know the topic."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        with RawClient(self.brokers[node - 1].port) as client:
            answer = client.call(request, MetadataResponse, 9)
        return {partition.partition_index: partition for partition in answer.topics[0].partitions}

    def create(self, topic: str, replicas: Sequence[int] = (1, 2, 3)) -> None:
        """Create a topic of one partition without a tool of the releases under test."""
        path = f"/brokers/topics/{topic}"
        self.kazoo.create(path, json.dumps({"version": 1, "partitions": {"0": list(replicas)}}).encode())
        until(lambda: self.leader(topic) == replicas[0])

    def leader(self, topic: str, index: int = 0) -> int:
        partitions = self.describe(topic)
        return max(int(partitions[index].leader_id), 0) if index in partitions else 0

    def produce(self, topic: str, values: Sequence[bytes]) -> None:
        leader = until(lambda: self.leader(topic))
        assert leader is not None
        with RawClient(self.brokers[leader - 1].port) as client:
            answer = client.call(produce_request(topic, {0: build(values)}), ProduceResponse, 7)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer

    def stored(self, path: str) -> Any:
        return json.loads(self.kazoo.get(path)[0])

    def is_there(self, path: str) -> bool:
        return self.kazoo.exists(path) is not None


@pytest.fixture(scope="module")
def cluster(
    broker_kind: str, zookeeper: ZooKeeperServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    if broker_kind != "kafkacompat":
        pytest.skip("Kafka 4 knows no ZooKeeper")
    chroot = new_chroot()
    connect = zookeeper.connect + chroot
    with ExitStack() as running:
        kazoo = KazooClient(zookeeper.connect)
        kazoo.start()
        kazoo.ensure_path(chroot)
        kazoo.chroot = chroot
        running.callback(kazoo.close)
        running.callback(kazoo.stop)
        brokers = []
        for node in NODES:
            properties = {
                "broker.id": str(node),
                "zookeeper.connect": connect,
                "auto.create.topics.enable": "false",
                "auto.leader.rebalance.enable": "false",
                # The last broker to stop cannot hand over its leaderships.
                "controlled.shutdown.retry.backoff.ms": "100",
            }
            brokers.append(KafkacompatBroker(tmp_path_factory.mktemp("broker"), properties))
            running.callback(brokers[-1].stop)
        with ThreadPoolExecutor() as threads:
            list(threads.map(Broker.start, brokers))
        until(lambda: len(kazoo.get_children("/brokers/ids")) == len(NODES) and kazoo.exists("/controller"))
        yield Cluster(connect, brokers, kazoo)


def test_a_topic_of_an_old_tool_is_led(cluster: Cluster, name: str) -> None:
    cluster.tool("0.8.2.2", TOPICS, "--create", "--topic", name, "--partitions", "2", "--replication-factor", "3")
    until(lambda: len(cluster.describe(name)) == 2)
    assert "topic_id" in cluster.stored(f"/brokers/topics/{name}")
    cluster.produce(name, [b"a"])


def test_offsets_of_version_0_are_those_of_zookeeper(cluster: Cluster, name: str) -> None:
    cluster.create(name)
    until(lambda: all(cluster.describe(name, node) for node in NODES))
    offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=42)
    commit = OffsetCommitRequest(group_id=name, topics=[OffsetCommitRequestTopic(name=name, partitions=[offset])])
    with RawClient(cluster.brokers[0].port) as client:
        committed = client.call(commit, OffsetCommitResponse, 0)
    assert committed.topics[0].partitions[0].error_code == 0
    path = f"/consumers/{name}/offsets/{name}/0"
    assert cluster.kazoo.get(path)[0] == b"42"
    wanted = OffsetFetchRequest(group_id=name, topics=[OffsetFetchRequestTopic(name=name, partition_indexes=[0])])

    def fetch(node: int) -> int:
        with RawClient(cluster.brokers[node - 1].port) as client:
            return int(client.call(wanted, OffsetFetchResponse, 0).topics[0].partitions[0].committed_offset)

    assert [fetch(node) for node in NODES] == [42, 42, 42]
    cluster.kazoo.set(path, b"43")
    assert [fetch(node) for node in NODES] == [43, 43, 43]


CONSOLE_CONSUMER = dict.fromkeys(POMS, "kafka.tools.ConsoleConsumer") | {
    "4.3.1": "org.apache.kafka.tools.consumer.ConsoleConsumer"
}
OFFSETS_FORMATTER = dict.fromkeys(POMS, "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter") | {
    "4.3.1": "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
}
COMMITTED = {
    "0.11.0.3": r"\[{0},{0},0\]::\[OffsetMetadata\[3,",
    "2.8.2": r"\[{0},{0},0\]::OffsetAndMetadata\(offset=3, ",
    "4.3.1": r'"group":"{0}","topic":"{0}","partition":0.*"offset":3,',
}
OFFSETS_TOPIC_PARTITIONS = 50


@pytest.mark.tools
@newer_releases
def test_consumers_decode_the_offsets_topic(cluster: Cluster, name: str, release: str) -> None:
    """The console consumer commits an offset; that of its own release and the newest one show the commit."""
    cluster.create(name)
    cluster.produce(name, [b"a", b"b", b"c"])
    bootstrap = cluster.brokers[0].bootstrap
    limits = ("--from-beginning", "--max-messages", "3", "--timeout-ms", "20000")
    group = ("--consumer-property", f"group.id={name}")
    read = ("--bootstrap-server", bootstrap, "--topic", name, *limits, *group)
    assert run_java(CONSOLE_CONSUMER[release], read, pom=POMS[release]).stdout.split() == ["a", "b", "c"]
    partition = partition_for_key(name, OFFSETS_TOPIC_PARTITIONS)
    for reader, pom in {release: POMS[release], "4.3.1": KAFKA_POM}.items():
        options = ("--partition", str(partition), "--offset", "earliest", "--formatter", OFFSETS_FORMATTER[reader])
        follow = ("--bootstrap-server", bootstrap, "--topic", "__consumer_offsets", *options, "--timeout-ms", "5000")
        # It waits for more until its time is over; old ones end with 1 then.
        shown = run_java(CONSOLE_CONSUMER[reader], follow, pom=pom, check=False)
        assert re.search(COMMITTED[reader].format(name), shown.stdout), shown


@pytest.mark.tools
@every_release
def test_topics(cluster: Cluster, name: str, release: str) -> None:
    created = ("--partitions", "2", "--replication-factor", "2", "--config", "retention.ms=100000")
    cluster.tool(release, TOPICS, "--create", "--topic", name, *created)
    until(lambda: all(len(cluster.describe(name, node)) == 2 for node in NODES))
    assert all(len(partition.replica_nodes) == 2 for partition in cluster.describe(name).values())
    topic_id = cluster.stored(f"/brokers/topics/{name}")["topic_id"]
    assert name in cluster.tool(release, TOPICS, "--list").split()
    described = cluster.tool(release, TOPICS, "--describe", "--topic", name)
    assert re.search(r"PartitionCount: ?2\s+ReplicationFactor: ?2\s+Configs: ?retention.ms=100000", described)
    assert len(re.findall(r"Leader: [123]\s+Replicas: [123],[123]\s+Isr: [123],[123]", described)) == 2

    cluster.tool(release, TOPICS, "--alter", "--topic", name, "--partitions", "4")
    until(lambda: all(partition.leader_id in NODES for partition in cluster.describe(name).values()))
    until(lambda: all(len(cluster.describe(name, node)) == 4 for node in NODES))
    assert until(lambda: cluster.stored(f"/brokers/topics/{name}").get("topic_id")) == topic_id

    cluster.tool(release, TOPICS, "--delete", "--topic", name)
    until(lambda: not any(cluster.describe(name, node) for node in NODES))
    until(lambda: not cluster.is_there(f"/brokers/topics/{name}"))
    until(lambda: not cluster.is_there(f"/admin/delete_topics/{name}"))
    until(lambda: not any(folder_of(broker, name) for broker in cluster.brokers))


def folder_of(broker: Broker, topic: str) -> list[Path]:
    return list(broker.data_folder.glob(f"{topic}-[0-9]"))


@pytest.mark.tools
@newer_releases
def test_configs(cluster: Cluster, name: str, release: str) -> None:
    cluster.create(name)
    entity = ("--entity-type", "topics", "--entity-name", name)
    cluster.tool(release, CONFIGS, "--alter", *entity, "--add-config", "max.message.bytes=200")
    assert "max.message.bytes=200" in cluster.tool(release, CONFIGS, "--describe", *entity)

    def is_refused() -> bool:
        with RawClient(cluster.brokers[0].port) as client:
            answer = client.call(produce_request(name, {0: build([b"a" * 1000])}), ProduceResponse, 7)
        return answer.responses[0].partition_responses[0].error_code == 10

    until(is_refused)
    cluster.tool(release, CONFIGS, "--alter", *entity, "--delete-config", "max.message.bytes")
    until(lambda: not is_refused())
    client = ("--entity-type", "clients", "--entity-name", name)
    cluster.tool(release, CONFIGS, "--alter", *client, "--add-config", "producer_byte_rate=1000")

    def list_rates(node: int) -> list[float]:
        component = ComponentData(entity_type="client-id", match_type=0, match=name)
        with RawClient(cluster.brokers[node - 1].port) as client:
            request = DescribeClientQuotasRequest(components=[component])
            answer = client.call(request, DescribeClientQuotasResponse, 1)
        return [quota.value for entry in answer.entries or () for quota in entry.values]

    until(lambda: [list_rates(node) for node in NODES] == [[1000.0]] * 3)


@pytest.mark.tools
@newer_releases
def test_reassignment(cluster: Cluster, name: str, release: str, tmp_path: Path) -> None:
    cluster.create(name, (1, 2))
    cluster.produce(name, [b"a", b"b"])
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [3, 2]}]}))
    file = ("--reassignment-json-file", str(plan))
    cluster.tool(release, REASSIGN, *file, "--execute")
    until(lambda: not cluster.is_there("/admin/reassign_partitions"))
    until(lambda: cluster.leader(name) == 3)
    assert cluster.stored(f"/brokers/topics/{name}")["partitions"] == {"0": [3, 2]}
    until(lambda: not folder_of(cluster.brokers[0], name))
    verified = cluster.tool(release, REASSIGN, *file, "--verify")
    assert re.search(r"(completed successfully|is complete)", verified), verified


@pytest.mark.tools
@newer_releases
def test_preferred_replica_election(cluster: Cluster, name: str, release: str, tmp_path: Path) -> None:
    cluster.create(name, (1, 2, 3))
    until(lambda: len(cluster.describe(name)[0].isr_nodes) == 3)
    cluster.brokers[0].stop()
    until(lambda: cluster.describe(name, 2)[0].leader_id == 2)
    cluster.brokers[0].start()
    until(lambda: sorted(cluster.describe(name, 2)[0].isr_nodes) == [1, 2, 3])
    assert cluster.describe(name, 2)[0].leader_id == 2
    plan = tmp_path / "election.json"
    plan.write_text(json.dumps({"partitions": [{"topic": name, "partition": 0}]}))
    cluster.tool(release, ELECT, "--path-to-json-file", str(plan))
    until(lambda: not cluster.is_there("/admin/preferred_replica_election"))
    until(lambda: [cluster.describe(name, node)[0].leader_id for node in NODES] == [1, 1, 1])


@pytest.fixture
def consumers(cluster: Cluster) -> Iterator[Any]:
    started: list[subprocess.Popen[str]] = []

    def start(topic: str, properties: Path, *options: str) -> subprocess.Popen[str]:
        arguments = ["--zookeeper", cluster.zookeeper, "--topic", topic, "--consumer.config", str(properties), *options]
        command = java_command("kafka.tools.ConsoleConsumer", arguments, pom=POMS["0.8.2.2"])
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.tools
def test_the_consumer_of_0_8_coordinates_through_zookeeper(
    cluster: Cluster, name: str, consumers: Any, tmp_path: Path
) -> None:
    partitions = {"0": [1, 2], "1": [2, 3]}
    value = json.dumps({"version": 1, "partitions": partitions}).encode()
    cluster.kazoo.create(f"/brokers/topics/{name}", value)
    until(lambda: cluster.leader(name, 1) == 2)
    cluster.produce(name, [b"a", b"b", b"c"])
    properties = tmp_path / "consumer.properties"
    properties.write_text(f"group.id={name}\nauto.commit.interval.ms=200\nzookeeper.session.timeout.ms=4000\n")
    first = consumers(name, properties, "--from-beginning")
    assert [first.stdout.readline() for _ in range(3)] == ["a\n", "b\n", "c\n"]
    until(lambda: cluster.is_there(f"/consumers/{name}/offsets/{name}/0"))
    until(lambda: cluster.kazoo.get(f"/consumers/{name}/offsets/{name}/0")[0] == b"3")
    owners = f"/consumers/{name}/owners/{name}"
    assert sorted(cluster.kazoo.get_children(owners)) == ["0", "1"]

    consumers(name, properties)
    until(lambda: len(cluster.kazoo.get_children(f"/consumers/{name}/ids")) == 2)

    def find_owners() -> set[bytes]:
        return {
            cluster.kazoo.get(f"{owners}/{index}")[0] for index in ("0", "1") if cluster.is_there(f"{owners}/{index}")
        }

    until(lambda: len(find_owners()) == 2)
    cluster.brokers[1].stop()
    cluster.produce(name, [b"d"])
    cluster.brokers[1].start()
    until(lambda: cluster.kazoo.get(f"/consumers/{name}/offsets/{name}/0")[0] == b"4")


@pytest.mark.tools
def test_the_performance_tools_of_0_8(cluster: Cluster, name: str) -> None:
    """The command lines of the benchmarks of that time, with fewer records."""
    created = ("--partitions", "6", "--replication-factor", "3")
    cluster.tool("0.8.2.2", TOPICS, "--create", "--topic", name, *created)
    until(lambda: len(cluster.describe(name)) == 6)
    servers = ",".join(broker.bootstrap for broker in cluster.brokers)
    properties = ("acks=1", f"bootstrap.servers={servers}", "buffer.memory=67108864", "batch.size=8196")
    main_class = "org.apache.kafka.clients.tools.ProducerPerformance"
    load = (name, "20000", "100", "-1", *properties)
    assert "20000 records sent, " in run_java(main_class, load, pom=POMS["0.8.2.2"]).stdout

    read = ("--topic", name, "--messages", "20000", "--threads", "1", "--group", name)
    lines = cluster.tool("0.8.2.2", "kafka.tools.ConsumerPerformance", *read).splitlines()
    assert lines[1].split(", ")[5] == "20000", lines

    latency = (servers, cluster.zookeeper, name, "200", "100", "-1")
    shown = run_java("kafka.tools.TestEndToEndLatency", latency, pom=POMS["0.8.2.2"]).stdout
    assert re.search(r"Avg latency: [0-9.]+ ms", shown), shown


SERVER_PROPERTIES = """
broker.id=7
port={port}
host.name=127.0.0.1
num.network.threads=4
num.io.threads=8
socket.send.buffer.bytes=1048576
socket.receive.buffer.bytes=1048576
socket.request.max.bytes=104857600
log.dirs={folder}/a,{folder}/b
num.partitions=8
log.flush.interval.messages=10000
log.flush.interval.ms=1000
log.retention.hours=168
log.segment.bytes=536870912
log.cleanup.interval.mins=1
zookeeper.connect={zookeeper}
zookeeper.connection.timeout.ms=1000000
kafka.metrics.polling.interval.secs=5
kafka.metrics.reporters=kafka.metrics.KafkaCSVMetricsReporter
kafka.csv.metrics.dir=/tmp/kafka_metrics
kafka.csv.metrics.reporter.enabled=false
replica.lag.max.messages=10000000
"""


class BrokerOf081(KafkacompatBroker):
    """A broker with the properties file of the benchmarks of that time."""

    def command(self) -> Sequence[str]:
        file = self._properties_file()
        text = SERVER_PROPERTIES.format(
            port=self.port, folder=self.folder, zookeeper=self.properties["zookeeper.connect"]
        )
        file.write_text(text)
        return [sys.executable, "-m", "kafkacompat", "serve", str(file)]


def test_a_properties_file_of_0_8_1_starts_a_broker(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    connect = zookeeper.connect + new_chroot()
    with BrokerOf081(tmp_path, {"zookeeper.connect": connect}) as broker:

        def list_brokers() -> list[tuple[int, str, int]]:
            with RawClient(broker.port) as client:
                answer = client.call(MetadataRequest(topics=[]), MetadataResponse, 9)
            return [(node.node_id, node.host, node.port) for node in answer.brokers]

        assert until(list_brokers) == [(7, "127.0.0.1", broker.port)]
        said = broker.stderr()
    assert "replica.lag.max.messages (replica.lag.time.max.ms replaces it" in said
    assert "log.cleanup.interval.mins (log.retention.check.interval.ms replaces it)" in said
    assert "kafka.csv.metrics.reporter.enabled (metrics are not written to CSV files any more" in said


@pytest.mark.tools
def test_zkcli_reads_the_tree(cluster: Cluster, name: str) -> None:
    cluster.create(name)
    arguments = ["-server", cluster.zookeeper, "get", f"/brokers/topics/{name}"]
    shown = run_java("org.apache.zookeeper.ZooKeeperMain", arguments, pom=ZKCLI_POM).stdout
    assert '"partitions":{"0":[1,2,3]}' in shown
