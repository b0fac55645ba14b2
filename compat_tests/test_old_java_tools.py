"""The command line tools of Apache Kafka 2.8.2 and 0.11.0.3, as they still lie on an administrator's machine.

Those of 0.11 that know nothing but ZooKeeper cannot work on a single node and are left out: kafka-topics, kafka-configs, kafka-acls,
kafka-reassign-partitions, kafka-preferred-replica-election and the old consumer. `test_zookeeper_tools` runs them on a cluster.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.java_tools import java_command, run_java
from compat_tests.raw_client import RawClient
from compat_tests.waiting import until
from kafkacompat.handlers import HANDLERS
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

JAVA = Path(__file__).resolve().parent / "java"
POMS = {"2.8.2": JAVA / "tools_2_8" / "pom.xml", "0.11.0.3": JAVA / "tools_0_11" / "pom.xml"}

TOPICS = "kafka.admin.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = "kafka.admin.ConsumerGroupCommand"
OFFSETS = "kafka.tools.GetOffsetShell"
CONSOLE_PRODUCER = "kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "kafka.tools.ConsoleConsumer"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
DELETE_RECORDS = 21

both_releases = pytest.mark.parametrize("release", POMS)


class Tools:
    """The tools of one *release*, for one broker."""

    def __init__(self, release: str, broker: Broker) -> None:
        self.release = release
        self.is_newer = release == "2.8.2"
        self.broker = broker
        # Up to 2.4 those that write and measure knew another name for it.
        self.server = "--bootstrap-server" if self.is_newer else "--broker-list"

    def run(self, main_class: str, *arguments: str, **options: Any) -> str:
        """Run a tool that knows --bootstrap-server and return its output; a non-zero exit fails the test."""
        return self.bare(main_class, "--bootstrap-server", self.broker.bootstrap, *arguments, **options)

    def bare(self, main_class: str, *arguments: str, **options: Any) -> str:
        return run_java(main_class, arguments, pom=POMS[self.release], **options).stdout

    def refused(self, main_class: str, *arguments: str) -> str:
        """Run a tool that must fail and return everything it said."""
        command = ["--bootstrap-server", self.broker.bootstrap, *arguments]
        done = run_java(main_class, command, pom=POMS[self.release], check=False)
        assert done.returncode == 1, done
        return done.stdout + done.stderr

    def console_produce(self, topic: str, lines: list[str], *options: str) -> None:
        text = "".join(line + "\n" for line in lines)
        self.bare(CONSOLE_PRODUCER, self.server, self.broker.bootstrap, "--topic", topic, *options, stdin=text)

    def console_consume(self, topic: str, count: int, *options: str) -> list[str]:
        limits = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", "20000")
        return self.run(CONSOLE_CONSUMER, "--topic", topic, *limits, *options).splitlines()

    def offsets(self, topic: str, *options: str) -> list[str]:
        return self.bare(OFFSETS, "--broker-list", self.broker.bootstrap, "--topic", topic, *options).splitlines()


def topic_of(broker: Broker, name: str, partitions: int = 1) -> str:
    """Create a topic without a tool."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    with RawClient(broker.port) as client:
        created = client.call(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 5)
    assert created.topics[0].error_code == 0, created
    return name


@both_releases
def test_console_tools_and_groups(broker: Broker, name: str, release: str) -> None:
    tools = Tools(release, broker)
    topic_of(broker, name)
    lines = [f"key{number}\tvalue {number}" for number in range(5)]
    tools.console_produce(name, lines, "--property", "parse.key=true", "--compression-codec", "lz4")
    read = ("--property", "print.key=true", "--consumer-property", f"group.id={name}")
    assert tools.console_consume(name, 5, *read) == lines
    assert name in tools.run(GROUPS, "--list").splitlines()
    assert re.search(rf"\b{name}\s+0\s+5\s+5\s+0\s", tools.run(GROUPS, "--describe", "--group", name))


@pytest.mark.tools
@both_releases
def test_groups_are_reset_and_deleted(broker: Broker, name: str, release: str) -> None:
    tools = Tools(release, broker)
    topic_of(broker, name)
    tools.console_produce(name, ["a", "b", "c"])
    tools.console_consume(name, 3, "--consumer-property", f"group.id={name}")
    reset = ("--reset-offsets", "--group", name, "--topic", name, "--to-earliest", "--execute")
    assert re.search(rf"{name}\s+0\s+0\s", tools.run(GROUPS, *reset))
    assert re.search(rf"\b{name}\s+0\s+0\s+3\s+3\s", tools.run(GROUPS, "--describe", "--group", name))
    if tools.is_newer:
        assert re.search(rf"{name}\s+Empty", tools.run(GROUPS, "--list", "--state"))
        assert re.search(rf"{name}\s.*Empty\s+0", tools.run(GROUPS, "--describe", "--group", name, "--state"))
        deleted = tools.run(GROUPS, "--delete-offsets", "--group", name, "--topic", name)
        assert re.search(rf"{name}\s+0\s+Successful", deleted)
        assert "successful" in tools.run(GROUPS, "--delete", "--group", name)
        assert name not in tools.run(GROUPS, "--list").splitlines()


@pytest.mark.tools
@both_releases
def test_offsets_and_deleted_records(broker: Broker, name: str, release: str, tmp_path: Path) -> None:
    tools = Tools(release, broker)
    if broker.kind == "kafka" and not tools.is_newer:
        pytest.skip("Kafka 4 closes the connection upon the first version of ListOffsets")
    topic_of(broker, name)
    tools.console_produce(name, [str(number) for number in range(10)])
    assert tools.offsets(name) == [f"{name}:0:10"]
    plan = tmp_path / "delete.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "offset": 4}]}))
    deleted = tools.run("kafka.admin.DeleteRecordsCommand", "--offset-json-file", str(plan))
    assert f"partition: {name}-0\tlow_watermark: 4" in deleted
    assert tools.offsets(name, "--time", "-2") == [f"{name}:0:4"]


@pytest.mark.tools
@both_releases
def test_broker_api_versions(broker: Broker, release: str) -> None:
    output = Tools(release, broker).run("kafka.admin.BrokerApiVersionsCommand")
    assert f"127.0.0.1:{broker.port} (id: 1 rack: null" in output
    shown = {int(key): usable for key, usable in re.findall(r"\w+\((\d+)\): .*\[usable: (\d+)\]", output)}
    assert shown[DELETE_RECORDS] == ("2" if release == "2.8.2" else "0")
    listed = {int(key) for key in re.findall(r"\w+\((\d+)\): \d+", output)}
    assert broker.kind == "kafka" or listed == HANDLERS.keys()


@pytest.fixture
def verifiable_consumer(broker: Broker, name: str, release: str) -> Iterator[subprocess.Popen[str]]:
    server = Tools(release, broker).server
    arguments = [server, broker.bootstrap, "--topic", name, "--group-id", name, "--reset-policy", "earliest"]
    command = java_command(VERIFIABLE_CONSUMER, [*arguments, "--max-messages", "5"], pom=POMS[release])
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        yield process
        process.kill()


@pytest.mark.tools
@both_releases
def test_verifiable_tools(broker: Broker, name: str, release: str, verifiable_consumer: subprocess.Popen[str]) -> None:
    tools = Tools(release, broker)
    sent = tools.bare(VERIFIABLE_PRODUCER, tools.server, broker.bootstrap, "--topic", name, "--max-messages", "5")
    events = [json.loads(line) for line in sent.splitlines()]
    assert [event["offset"] for event in events if event["name"] == "producer_send_success"] == [0, 1, 2, 3, 4]
    assert (events[-1]["name"], events[-1]["acked"]) == ("tool_data", 5)
    # The consumer of 0.11 has its records then, and continues polling for ever.
    assert verifiable_consumer.stdout is not None
    for event in map(json.loads, verifiable_consumer.stdout):
        if event["name"] == "offsets_committed" and event["offsets"][0]["offset"] == 5:
            return
    raise AssertionError("the consumer ended before it had committed all offsets")


@pytest.mark.tools
@both_releases
def test_performance_tools(broker: Broker, name: str, release: str) -> None:
    tools = Tools(release, broker)
    topic_of(broker, name, 3)
    load = ("--num-records", "5000", "--record-size", "200", "--throughput", "-1")
    properties = ("--producer-props", f"bootstrap.servers={broker.bootstrap}", "compression.type=gzip")
    output = tools.bare(PRODUCER_PERFORMANCE, "--topic", name, *load, *properties)
    assert re.search(r"^5000 records sent, ", output, re.MULTILINE)
    options = ("--timeout", "30000") if tools.is_newer else ("--new-consumer",)
    read = ("--topic", name, "--messages", "5000", *options)
    lines = tools.bare("kafka.tools.ConsumerPerformance", tools.server, broker.bootstrap, *read).splitlines()
    consumed = dict(zip(lines[0].split(", "), lines[1].split(", "), strict=False))
    assert consumed["data.consumed.in.nMsg"] == "5000"


@pytest.mark.tools
@pytest.mark.parametrize("release", ["0.11.0.3"])
def test_clients_from_before_there_were_groups(broker: Broker, name: str, release: str) -> None:
    """The Scala producer writes Produce v0 and the SimpleConsumer reads Fetch v2: message format 0 or 1."""
    if broker.kind == "kafka":
        pytest.skip("Kafka 4 closes the connection upon the first versions of Produce and Fetch")
    tools = Tools(release, broker)
    topic_of(broker, name)
    lines = [f"value {number}" for number in range(3)]
    tools.console_produce(name, lines, "--old-producer")
    shell = ("--topic", name, "--partition", "0", "--max-messages", "3", "--no-wait-at-logend")
    output = tools.bare("kafka.tools.SimpleConsumerShell", "--broker-list", broker.bootstrap, *shell)
    assert output.splitlines() == lines
    assert tools.console_consume(name, 3) == lines


@pytest.fixture
def newer(broker: Broker) -> Tools:
    return Tools("2.8.2", broker)


def test_topics(newer: Tools, name: str) -> None:
    newer.run(TOPICS, "--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=100000")
    described = newer.run(TOPICS, "--describe", "--topic", name)
    assert re.search(r"PartitionCount: 2\s+ReplicationFactor: 1\s+Configs: .*retention.ms=100000", described)
    newer.run(TOPICS, "--alter", "--topic", name, "--partitions", "3")
    until(lambda: "PartitionCount: 3" in newer.run(TOPICS, "--describe", "--topic", name))
    newer.run(TOPICS, "--delete", "--topic", name)
    assert name not in newer.run(TOPICS, "--list").splitlines()


@pytest.mark.tools
def test_configs(newer: Tools, name: str) -> None:
    topic_of(newer.broker, name)
    topic = ("--entity-type", "topics", "--entity-name", name)
    newer.run(CONFIGS, "--alter", *topic, "--add-config", "retention.ms=7200000")
    until(lambda: "DYNAMIC_TOPIC_CONFIG:retention.ms=7200000" in newer.run(CONFIGS, "--describe", *topic))
    node = newer.run(CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all")
    assert "offsets.topic.num.partitions=50 sensitive=false synonyms={DEFAULT_CONFIG:" in node


@pytest.mark.tools
def test_quotas_and_passwords(newer: Tools, name: str) -> None:
    user = ("--entity-type", "users", "--entity-name", name)
    newer.run(CONFIGS, "--alter", *user, "--add-config", "consumer_byte_rate=77")
    newer.run(CONFIGS, "--alter", *user, "--add-config", "SCRAM-SHA-512=[password=hunter2]")
    expected = [
        f"Quota configs for user-principal '{name}' are consumer_byte_rate=77.0",
        f"SCRAM credential configs for user-principal '{name}' are SCRAM-SHA-512=iterations=4096",
    ]
    until(lambda: newer.run(CONFIGS, "--describe", *user).splitlines() == expected)


@pytest.mark.tools
def test_security_that_is_not_there(newer: Tools, tmp_path: Path) -> None:
    assert "SecurityDisabledException: " in newer.refused("kafka.admin.AclCommand", "--list")
    properties = tmp_path / "client.properties"
    properties.touch()
    tokens = ("--command-config", str(properties), "--describe")
    assert "UnsupportedByAuthentication" in newer.refused("kafka.admin.DelegationTokenCommand", *tokens)


@pytest.mark.tools
def test_reassignment_and_election(newer: Tools, name: str, tmp_path: Path) -> None:
    topic_of(newer.broker, name)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [1]}]}))
    reassign, file = "kafka.admin.ReassignPartitionsCommand", ("--reassignment-json-file", str(plan))
    assert f"Successfully started partition reassignment for {name}-0" in newer.run(reassign, *file, "--execute")
    assert f"Reassignment of partition {name}-0 is complete." in newer.run(reassign, *file, "--verify")
    assert "No partition reassignments found." in newer.run(reassign, "--list")
    election = ("--election-type", "PREFERRED", "--topic", name, "--partition", "0")
    # The tool means to name those partitions, and names the ones that were elected.
    elected = newer.run("kafka.admin.LeaderElectionCommand", *election)
    assert elected.strip() == "Valid replica already elected for partitions"


@pytest.mark.tools
def test_log_directories(newer: Tools, name: str) -> None:
    topic_of(newer.broker, name)
    newer.console_produce(name, ["a"])
    output = newer.run("kafka.admin.LogDirsCommand", "--describe", "--topic-list", name)
    ((folder),) = json.loads(output.splitlines()[-1])["brokers"][0]["logDirs"]
    assert folder["error"] is None
    (partition,) = folder["partitions"]
    assert (partition["partition"], partition["offsetLag"], partition["isFuture"]) == (f"{name}-0", 0, False)
    assert partition["size"] > 0
