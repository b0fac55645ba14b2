"""The command line tools of Apache Kafka 4.3.1, one process a call, as an administrator runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.java_tools import run_java
from compat_tests.waiting import until
from kafkacompat.handlers import HANDLERS
from kafkacompat.wire.apis import API_NAMES

TOOLS = "org.apache.kafka.tools"
CONSUMER_GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
CONSOLE_CONSUMER = f"{TOOLS}.consumer.ConsoleConsumer"
CONFIGS = "kafka.admin.ConfigCommand"
ACL = ("--allow-principal", "User:x", "--operation", "Read", "--topic", "t")
FETCH = 1


def run_tool(broker: Broker, main_class: str, *arguments: str, stdin: str | None = None) -> str:
    """Run a tool against the broker and return its standard output; a non-zero exit fails the test."""
    return run_java(main_class, ["--bootstrap-server", broker.bootstrap, *arguments], stdin=stdin).stdout


def run_topics_tool(broker: Broker, *arguments: str) -> str:
    return run_tool(broker, f"{TOOLS}.TopicCommand", *arguments)


def create_topic(broker: Broker, topic: str, partitions: int = 1) -> None:
    run_topics_tool(broker, "--create", "--topic", topic, "--partitions", str(partitions), "--replication-factor", "1")


def console_produce(broker: Broker, topic: str, lines: list[str], *options: str) -> None:
    text = "".join(line + "\n" for line in lines)
    run_tool(broker, f"{TOOLS}.ConsoleProducer", "--topic", topic, *options, stdin=text)


def test_topics_are_created_described_altered_and_deleted(broker: Broker, name: str) -> None:
    create_topic(broker, name, 2)
    assert name in run_topics_tool(broker, "--list").splitlines()
    described = run_topics_tool(broker, "--describe", "--topic", name)
    assert re.search(r"PartitionCount: 2\s+ReplicationFactor: 1", described)
    assert re.search(r"Partition: 1\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described)
    run_topics_tool(broker, "--alter", "--topic", name, "--partitions", "3")
    until(lambda: "PartitionCount: 3" in run_topics_tool(broker, "--describe", "--topic", name))
    run_topics_tool(broker, "--delete", "--topic", name)
    assert name not in run_topics_tool(broker, "--list").splitlines()


def test_console_producer_and_consumer(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    options = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    lines = [f"h1:v{number}\tkey{number}\tvalue {number}" for number in range(5)]
    console_produce(broker, name, lines, *options, "--compression-codec", "zstd")
    shown = [word for field in ("key", "headers", "offset") for word in ("--formatter-property", f"print.{field}=true")]
    read = ("--from-beginning", "--max-messages", "5", "--timeout-ms", "20000")
    output = run_tool(broker, CONSOLE_CONSUMER, "--topic", name, *read, *shown)
    expected = [f"Offset:{number}\th1:v{number}\tkey{number}\tvalue {number}" for number in range(5)]
    assert output.splitlines() == expected


def test_consumer_groups_are_listed_described_and_reset(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    console_produce(broker, name, ["a", "b", "c", "d"])
    read = ("--from-beginning", "--max-messages", "4", "--timeout-ms", "20000", "--group", name)
    run_tool(broker, CONSOLE_CONSUMER, "--topic", name, *read)
    assert name in run_tool(broker, CONSUMER_GROUPS, "--list").splitlines()
    described = run_tool(broker, CONSUMER_GROUPS, "--describe", "--group", name)
    assert re.search(rf"{name}\s+{name}\s+0\s+4\s+4\s+0", described)
    target = ("--group", name, "--topic", name)
    run_tool(broker, CONSUMER_GROUPS, "--reset-offsets", *target, "--to-earliest", "--execute")
    described = run_tool(broker, CONSUMER_GROUPS, "--describe", "--group", name)
    assert re.search(rf"{name}\s+{name}\s+0\s+0\s+4\s+4", described)
    run_tool(broker, CONSUMER_GROUPS, "--delete", "--group", name)
    assert name not in run_tool(broker, CONSUMER_GROUPS, "--list").splitlines()


@pytest.mark.tools
def test_offsets_are_listed_and_records_deleted(broker: Broker, name: str, tmp_path: Path) -> None:
    create_topic(broker, name)
    console_produce(broker, name, [str(number) for number in range(10)])
    offsets = f"{TOOLS}.GetOffsetShell"
    assert run_tool(broker, offsets, "--topic", name).strip() == f"{name}:0:10"
    plan = tmp_path / "delete.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "offset": 4}]}))
    deleted = run_tool(broker, f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(plan))
    assert f"partition: {name}-0\tlow_watermark: 4" in deleted
    assert run_tool(broker, offsets, "--topic", name, "--time", "earliest").strip() == f"{name}:0:4"
    assert re.fullmatch(rf"{name}:0:\d", run_tool(broker, offsets, "--topic", name, "--time", "max-timestamp").strip())


@pytest.mark.tools
def test_configs(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    entity = ("--entity-type", "topics", "--entity-name", name)
    run_tool(
        broker, CONFIGS, "--alter", *entity, "--add-config", "retention.ms=7200000,cleanup.policy=[compact,delete]"
    )

    def described() -> str:
        return run_tool(broker, CONFIGS, "--describe", *entity)

    until(lambda: "retention.ms=7200000" in described())
    run_tool(broker, CONFIGS, "--alter", *entity, "--delete-config", "retention.ms")
    until(lambda: "retention.ms" not in described())
    assert "cleanup.policy=compact,delete" in described()
    everything = run_tool(broker, CONFIGS, "--describe", *entity, "--all")
    assert "segment.bytes=1073741824 sensitive=false" in everything
    node = run_tool(broker, CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all")
    assert "num.partitions=1 sensitive=false" in node


def test_broker_api_versions(broker: Broker) -> None:
    output = run_tool(broker, f"{TOOLS}.BrokerApiVersionsCommand")
    assert f"127.0.0.1:{broker.port} (id: 1 rack: null" in output
    shown = re.findall(r"(\w+)\((\d+)\): (\d+)(?: to (\d+))? \[usable: \d+\]", output)
    ranges = {int(key): (name, int(first), int(last or first)) for name, key, first, last in shown}
    expected = {
        key: (API_NAMES[key].title().replace("_", ""), handler.versions.first, handler.versions.last)
        for key, handler in HANDLERS.items()
    }
    if broker.kind == "kafka":
        assert ranges[FETCH] == ("Fetch", 4, expected[FETCH][2])
    else:
        assert ranges == expected


def run_failing_tool(broker: Broker, main_class: str, *arguments: str) -> str:
    """Run a tool that must fail and return its output."""
    done = run_java(main_class, ["--bootstrap-server", broker.bootstrap, *arguments], check=False)
    assert done.returncode == 1, done
    return done.stdout + done.stderr


@pytest.mark.tools
def test_quotas(broker: Broker, name: str) -> None:
    user = ("--entity-type", "users", "--entity-name", name)
    client = ("--entity-type", "clients", "--entity-default")
    address = ("--entity-type", "ips", "--entity-name", "10.11.12.13")
    completed = f"Completed updating config for user {name}.\n"
    rates = "producer_byte_rate=1000,controller_mutation_rate=2.5"
    assert run_tool(broker, CONFIGS, "--alter", *user, "--add-config", rates) == completed
    assert run_tool(broker, CONFIGS, "--alter", *user, *client, "--add-config", "request_percentage=12.5") == completed
    run_tool(broker, CONFIGS, "--alter", *address, "--add-config", "connection_creation_rate=7")

    def described(*entity: str) -> str:
        return run_tool(broker, CONFIGS, "--describe", *entity)

    expected = (
        f"Quota configs for user-principal '{name}' are controller_mutation_rate=2.5, producer_byte_rate=1000.0\n"
    )
    until(lambda: described(*user) == expected)
    both = f"Quota configs for user-principal '{name}', the default client-id are request_percentage=12.5\n"
    assert both in described("--entity-type", "users", "--entity-type", "clients")
    assert described(*address) == "Quota configs for ip '10.11.12.13' are connection_creation_rate=7.0\n"
    assert run_tool(broker, CONFIGS, "--alter", *user, "--delete-config", "producer_byte_rate") == completed
    until(lambda: "producer_byte_rate" not in described(*user))
    negative = run_failing_tool(broker, CONFIGS, "--alter", *user, "--add-config", "producer_byte_rate=-5")
    assert "InvalidRequestException" in negative and "producer_byte_rate" in negative


@pytest.mark.tools
def test_passwords(broker: Broker, name: str) -> None:
    user = ("--entity-type", "users", "--entity-name", name)
    password = "SCRAM-SHA-256=[iterations=8192,password=hunter2]"
    completed = f"Completed updating config for user {name}.\n"
    assert run_tool(broker, CONFIGS, "--alter", *user, "--add-config", password) == completed
    shown = f"SCRAM credential configs for user-principal '{name}' are SCRAM-SHA-256=iterations=8192\n"
    until(lambda: run_tool(broker, CONFIGS, "--describe", *user) == shown)
    assert run_tool(broker, CONFIGS, "--alter", *user, "--delete-config", "SCRAM-SHA-256") == completed
    until(lambda: run_tool(broker, CONFIGS, "--describe", *user) == "")
    assert "ResourceNotFoundException" in run_failing_tool(
        broker, CONFIGS, "--alter", *user, "--delete-config", "SCRAM-SHA-256"
    )
    assert "hunter2" not in broker.stderr() + broker.stdout()


@pytest.mark.tools
@pytest.mark.parametrize("change", [("--list",), ("--add", *ACL), ("--remove", "--force", *ACL)])
def test_acls_need_an_authorizer(broker: Broker, change: tuple[str, ...]) -> None:
    said = run_failing_tool(broker, f"{TOOLS}.AclCommand", *change)
    assert "Error while executing ACL command: org.apache.kafka.common.errors.SecurityDisabledException: " in said


@pytest.mark.tools
@pytest.mark.parametrize(
    "change",
    [
        ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:x"),
        ("--describe",),
        ("--renew", "--renew-time-period", "-1", "--hmac", "YWJj"),
        ("--expire", "--expiry-time-period", "-1", "--hmac", "YWJj"),
    ],
)
def test_delegation_tokens_need_another_listener(broker: Broker, tmp_path: Path, change: tuple[str, ...]) -> None:
    properties = tmp_path / "client.properties"
    properties.touch()
    said = run_failing_tool(broker, f"{TOOLS}.DelegationTokenCommand", "--command-config", str(properties), *change)
    assert "UnsupportedByAuthenticationException: Delegation Token requests are not allowed on PLAINTEXT" in said


@pytest.mark.parametrize("codec", [pytest.param("none", marks=pytest.mark.tools), "lz4"])
def test_performance_tools(broker: Broker, name: str, codec: str) -> None:
    create_topic(broker, name, 3)
    load = ("--num-records", "50000", "--record-size", "200", "--throughput", "-1")
    properties = ("--command-property", f"compression.type={codec}", "acks=all")
    output = run_tool(broker, f"{TOOLS}.ProducerPerformance", "--topic", name, *load, *properties)
    assert re.search(r"^50000 records sent, ", output, re.MULTILINE)
    read = ("--topic", name, "--num-records", "50000", "--timeout", "30000")
    header, figures = run_tool(broker, f"{TOOLS}.ConsumerPerformance", *read).splitlines()[:2]
    consumed = dict(zip(header.split(", "), figures.split(", "), strict=True))
    assert consumed["data.consumed.in.nMsg"] == "50000"
