"""The commands for any cluster, such as `kafkacompat topics`, against this broker and two releases of Apache Kafka."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.batches import RECENT_MS, build, patch_header
from compat_tests.brokers import ROOT, Broker, KafkaBroker, KafkacompatBroker, OldKafkaBroker
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.waiting import until
from kafkacompat.cli import main
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.apis.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

ATTRIBUTES_POSITION, IS_TRANSACTIONAL = 21, 0x10
PRODUCE_VERSION = 9
LONELY_PRODUCER = 4000
"""The id of a producer that no coordinator knows."""
PROPERTIES = {"super.users": "User:ANONYMOUS", "transaction.partition.verification.enable": "false"}
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OLD_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


class Commands:
    """The commands, sent to one broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.bootstrap = broker.bootstrap

    def succeed(self, *words: str, stdin: str | None = None) -> str:
        """Run a command, which must succeed; return its standard output."""
        done = CliRunner().invoke(main, [*words, "--bootstrap-server", self.bootstrap], input=stdin)
        assert done.exit_code == 0, (words, done.output, done.exception)
        return done.stdout

    def read(self, *words: str) -> Any:
        """Return the JSON that a command writes."""
        return json.loads(self.succeed(*words, "--json"))

    def refuse(self, *words: str) -> str:
        """Run a command, which the broker must refuse; return its sentence."""
        done = CliRunner().invoke(main, [*words, "--bootstrap-server", self.bootstrap])
        assert done.exit_code == 1, (words, done.output, done.exception)
        (sentence,) = done.stderr.splitlines()
        return sentence


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    """The commands on this broker."""
    with KafkacompatBroker(tmp_path / "node", {"authorizer.class.name": AUTHORIZER, **PROPERTIES}) as broker:
        yield Commands(broker)


@pytest.fixture(params=[KafkaBroker, OldKafkaBroker], ids=lambda kind: str(kind.kind))
def commands_on_kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Commands]:
    """The commands on Apache Kafka."""
    authorizer = AUTHORIZER if request.param is KafkaBroker else OLD_AUTHORIZER
    properties = {
        "authorizer.class.name": authorizer,
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        **PROPERTIES,
    }
    with request.param(tmp_path / "node", properties) as broker:
        yield Commands(broker)


def test_commands_on_this_broker(commands: Commands) -> None:
    administer(commands)


@pytest.mark.compare
def test_commands_on_kafka(commands_on_kafka: Commands) -> None:
    administer(commands_on_kafka)
    if commands_on_kafka.broker.kind == KafkaBroker.kind:
        see_a_share_group(commands_on_kafka)


def administer(commands: Commands) -> None:
    """Use each command, and check what it did by other commands and by a client."""
    use_topics(commands)
    use_groups(commands)
    use_configs(commands)
    use_acls(commands)
    use_users_and_quotas(commands)
    use_transactions(commands)
    end_a_hanging_transaction(commands)
    see_the_cluster(commands)


def use_topics(commands: Commands) -> None:
    commands.succeed("topics", "create", "orders", "--partitions", "2", "--config", "retention.ms=7200000")
    assert "it exists already" in commands.refuse("topics", "create", "orders")
    commands.succeed("topics", "create", "orders", "--if-not-exists")
    commands.succeed("topics", "alter", "orders", "--partitions", "3", "--config", "cleanup.policy=compact,delete")
    # Brokers of a KRaft cluster learn of a change after the controller has confirmed it.
    expected = {"retention.ms": "7200000", "cleanup.policy": "compact,delete"}
    until(lambda: commands.read("topics", "describe", "orders")[0]["configs"] == expected)
    (described,) = commands.read("topics", "describe", "orders")
    assert [partition["replicas"] for partition in described["partitions"]] == [[1], [1], [1]]
    assert len(described["topic_id"]) == 22
    assert {"config": "retention.ms", "value": "7200000"}.items() <= commands.read("topics", "configs", "orders")[0][
        "configs"
    ][1].items()
    commands.succeed("topics", "create", "spare")
    commands.succeed("topics", "delete", "spare")
    until(lambda: [topic["topic"] for topic in commands.read("topics", "list", "--exclude-internal")] == ["orders"])
    assert "(did you mean orders?)" in commands.refuse("topics", "describe", "ordres")
    commands.refuse("topics", "create", "x", "--config", "no.such.config=1")
    commands.refuse("topics", "create", "x", "--replication-factor", "3")
    commands.refuse("topics", "alter", "orders", "--partitions", "1")


def use_groups(commands: Commands) -> None:
    producer = Producer({"bootstrap.servers": commands.bootstrap})
    for number in range(10):
        producer.produce("orders", str(number), key="k", partition=0, timestamp=RECENT_MS + number * 1000)
    assert producer.flush(20) == 0
    resetting = ("groups", "reset", "billing", "--topic", "orders:0")
    commands.succeed(*resetting, "--to-offset", "4", "--execute")
    client = Consumer({"bootstrap.servers": commands.bootstrap, "group.id": "billing", "enable.auto.commit": False})
    assert client.committed([TopicPartition("orders", 0)], 20)[0].offset == 4
    client.close()

    assert [(group["group"], group["state"]) for group in commands.read("groups", "list")] == [("billing", "Empty")]
    (described,) = commands.read("groups", "describe", "billing")
    (row,) = described["offsets"]
    assert (row["offset"], row["log_end_offset"], row["lag"]) == (4, 10, 6)
    assert commands.read(*resetting, "--shift-by", "-1")["offsets"][0]["new_offset"] == 3
    assert commands.read("groups", "describe", "billing")[0]["offsets"][0]["offset"] == 4
    sixth = datetime.fromtimestamp(RECENT_MS / 1000 + 5, timezone.utc).isoformat()
    for option, offset in (
        (("--to-earliest",), 0),
        (("--to-datetime", sixth), 5),
        (("--to-latest",), 10),
        (("--to-offset", "7"), 7),
    ):
        commands.succeed(*resetting, *option, "--execute")
        assert commands.read("groups", "describe", "billing")[0]["offsets"][0]["offset"] == offset
    see_members(commands)
    commands.succeed("groups", "delete", "billing")
    assert "there is no group billing" in commands.refuse("groups", "delete", "billing")


def see_members(commands: Commands) -> None:
    protocols = ["classic"] if commands.broker.kind == OldKafkaBroker.kind else ["classic", "consumer"]
    for protocol in protocols:
        settings = {"bootstrap.servers": commands.bootstrap, "group.id": "billing", "group.protocol": protocol}
        consumer = Consumer({**settings, "client.id": "reader"})
        consumer.subscribe(["orders"])
        until(lambda consumer=consumer: consumer.poll(0.05) is None and len(consumer.assignment()) == 3)  # type: ignore[misc]
        (described,) = commands.read("groups", "describe", "billing", "--members")
        (member,) = described["members"]
        assert (described["type"], described["state"], member["client_id"]) == (protocol, "Stable", "reader")
        assert [row["partition"] for row in member["partitions"]] == [0, 1, 2]
        sentence = commands.refuse("groups", "reset", "billing", "--topic", "orders", "--to-latest")
        assert "the group billing has members" in sentence
        consumer.close()


def see_a_share_group(commands: Commands) -> None:
    """Become a member of a share group, which this broker does not serve."""
    joining = ShareGroupHeartbeatRequest(
        group_id="shared", member_id=str(UUID(int=1)), subscribed_topic_names=["orders"]
    )
    with RawClient(commands.broker.port) as client:

        def has_partitions() -> bool:
            answer = client.call(joining, ShareGroupHeartbeatResponse, 1)
            if answer.error_code:
                return False
            joining.member_epoch = answer.member_epoch
            (member,) = commands.read("groups", "describe", "shared")[0]["members"]
            return [row["partition"] for row in member["partitions"]] == [0, 1, 2]

        until(has_partitions)
        (described,) = commands.read("groups", "describe", "shared")
        assert (described["type"], described["state"], described["assignor"]) == ("share", "Stable", "simple")
        assert [row["partition"] for row in described["offsets"]] == [0, 1, 2]
        assert "is of the type share" in commands.refuse("groups", "reset", "shared", "--all-topics", "--to-latest")


def use_configs(commands: Commands) -> None:
    commands.succeed("configs", "alter", "topics", "orders", "--delete-config", "retention.ms,cleanup.policy")
    until(lambda: commands.read("configs", "describe", "topics", "orders")[0]["configs"] == [])
    commands.succeed("configs", "alter", "brokers", "--entity-default", "--add-config", "log.cleaner.threads=2")
    commands.succeed("configs", "alter", "brokers", "1", "--add-config", "background.threads=11")
    until(lambda: find_config(commands, "background.threads") == ("11", "DYNAMIC_BROKER_CONFIG"))
    until(lambda: find_config(commands, "log.cleaner.threads") == ("2", "DYNAMIC_DEFAULT_BROKER_CONFIG"))
    (loggers,) = commands.read("configs", "describe", "broker-loggers", "1")
    assert any(entry["source"] == "DYNAMIC_BROKER_LOGGER_CONFIG" for entry in loggers["configs"])


def find_config(commands: Commands, name: str) -> tuple[str, str]:
    """Return the value of a broker's config, and its source."""
    (described,) = commands.read("configs", "describe", "brokers", "1", "--all")
    return next((entry["value"], entry["source"]) for entry in described["configs"] if entry["config"] == name)


def use_acls(commands: Commands) -> None:
    rule = ("--allow-principal", "User:alice", "--operation", "Read")
    commands.succeed("acls", "add", *rule, "--topic", "orders")
    commands.succeed("acls", "add", *rule, "--topic", "shop.", "--resource-pattern-type", "prefixed")
    until(lambda: len(commands.read("acls", "list")) == 2)
    matching = ("--topic", "shop.x", "--resource-pattern-type", "match")
    assert [listed["resource"] for listed in commands.read("acls", "list", *matching)] == ["shop."]
    (removed,) = commands.read("acls", "remove", *rule, "--topic", "orders")
    assert removed == {
        "principal": "User:alice",
        "permission": "ALLOW",
        "operation": "READ",
        "resource_type": "TOPIC",
        "resource": "orders",
        "pattern_type": "LITERAL",
        "host": "*",
    }
    commands.succeed("acls", "remove", "--topic", "shop.", "--resource-pattern-type", "any", "--force")
    until(lambda: commands.read("acls", "list") == [])


def use_users_and_quotas(commands: Commands) -> None:
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        commands.succeed("users", "create", "alice", "--mechanism", mechanism, stdin="secret\n")
    until(lambda: len(commands.read("users", "list")) == 2)
    commands.succeed("users", "delete", "alice")
    until(lambda: commands.read("users", "list") == [])
    assert "there is no user bob" in commands.refuse("users", "delete", "bob")

    commands.succeed("quotas", "alter", "--user", "alice", "--add-config", "producer_byte_rate=1048576")
    commands.succeed("quotas", "alter", "--client-defaults", "--add-config", "request_percentage=12.5")
    expected = [
        {"entity": {"client-id": None}, "quotas": {"request_percentage": 12.5}},
        {"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 1048576.0}},
    ]
    until(lambda: commands.read("quotas", "describe") == expected)
    commands.succeed("quotas", "alter", "--user", "alice", "--delete-config", "producer_byte_rate")
    until(lambda: commands.read("quotas", "describe", "--user", "alice") == [])
    commands.refuse("quotas", "alter", "--user", "alice", "--add-config", "speed=1")


def use_transactions(commands: Commands) -> None:
    producer = Producer({"bootstrap.servers": commands.bootstrap, "transactional.id": "billing-1"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", "x", partition=1)
    producer.flush(20)
    (listed,) = commands.read("transactions", "list", "--state", "Ongoing")
    (described,) = commands.read("transactions", "describe", "billing-1")
    assert listed["producer_id"] == described["producer_id"]
    assert described["partitions"] == [{"topic": "orders", "partition": 1}]
    commands.succeed("transactions", "abort", "billing-1")
    until(lambda: commands.read("transactions", "describe", "billing-1")[0]["state"] == "CompleteAbort")
    assert "it is not open, but CompleteAbort" in commands.refuse("transactions", "abort", "billing-1")
    assert "(did you mean billing-1?)" in commands.refuse("transactions", "describe", "biling-1")


def end_a_hanging_transaction(commands: Commands) -> None:
    """Append a transactional batch without a coordinator's knowledge, and abort what then hangs."""
    plain = build([b"x"], producer_id=LONELY_PRODUCER, producer_epoch=0, base_sequence=0)
    batch = patch_header(plain, ATTRIBUTES_POSITION, "h", IS_TRANSACTIONAL)
    with RawClient(commands.broker.port) as client:
        request = produce_request("orders", {2: batch})
        request.transactional_id = "lonely"
        (topic,) = client.call(request, ProduceResponse, PRODUCE_VERSION).responses
        assert topic.partition_responses[0].error_code == 0, topic
    place = ("--topic", "orders", "--partition", "2")
    (producer,) = commands.read("transactions", "describe-producers", *place)
    assert (producer["producer_id"], producer["start_offset"]) == (LONELY_PRODUCER, 0)
    # The batch is an hour old, and so is the transaction.
    (hanging,) = commands.read("transactions", "find-hanging")
    assert (hanging["topic"], hanging["partition"], hanging["start_offset"]) == ("orders", 2, 0)
    assert commands.read("transactions", "find-hanging", "--max-transaction-timeout", "120") == []
    assert "no open transaction begins" in commands.refuse("transactions", "abort", *place, "--start-offset", "1")
    commands.succeed("transactions", "abort", *place, "--start-offset", "0")
    (producer,) = commands.read("transactions", "describe-producers", *place)
    assert producer["start_offset"] is None
    assert commands.read("transactions", "find-hanging", "orders") == []


def see_the_cluster(commands: Commands) -> None:
    status = commands.read("status")
    assert (status["controller"], status["offline_partitions"], status["under_replicated_partitions"]) == (1, 0, 0)
    (broker,) = commands.read("brokers")
    assert (broker["node_id"], broker["state"], broker["port"]) == (1, "live", commands.broker.port)
    assert "partitions: 0 offline, 0 under-replicated" in commands.succeed("status")


def test_a_pipe_that_closes_ends_a_command_without_a_traceback(broker: Broker, broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("this is our command line")
    words = [sys.executable, "-m", "kafkacompat", "configs", "describe", "brokers", "1", "--all"]
    running = subprocess.Popen(
        [*words, "--bootstrap-server", broker.bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert running.stdout is not None and running.stderr is not None
    running.stdout.close()
    assert running.stderr.read() == ""
    assert running.wait(30) == 0
