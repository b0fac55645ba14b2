"""kafka-python's KafkaAdminClient and its command line (python -m kafka.admin): every request they have."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ACL,
    AbortTransactionSpec,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    MemberToRemove,
    OffsetSpec,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.cli.admin import run_cli
from kafka.errors import BrokerResponseError, SecurityDisabledError

from compat_tests.brokers import Broker
from compat_tests.waiting import until
from kafkacompat.handlers import HANDLERS

Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def topic(admin: Any, name: str) -> str:
    admin.create_topics({name: {"num_partitions": 2, "replication_factor": 1}})
    admin.wait_for_topics([name])
    return name


@pytest.fixture
def cli(broker: Broker, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run `python -m kafka.admin` in this process and return its output."""

    def run(*arguments: str, form: str = "json", code: int = 0) -> Any:
        capsys.readouterr()
        assert run_cli(["-b", broker.bootstrap, "--format", form, *arguments]) == code, capsys.readouterr()
        printed = capsys.readouterr().out
        return json.loads(printed) if form == "json" and code == 0 else printed

    return run


def produce(broker: Broker, topic: str, count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for number in range(count):
        producer.send(topic, b"%d" % number, partition=0)
    producer.flush(30)
    producer.close()


def test_producer_and_consumer_as_programs(broker: Broker, topic: str) -> None:
    program = [sys.executable, "-m", "kafka.producer", "-b", broker.bootstrap, "-t", topic]
    subprocess.run(program, input="a\nb\nc\n", text=True, check=True, timeout=60, capture_output=True)
    options = ["-t", topic, "-C", "auto_offset_reset=earliest", "-C", "consumer_timeout_ms=3000"]
    program = [sys.executable, "-m", "kafka.consumer", "-b", broker.bootstrap, *options]
    done = subprocess.run(program, text=True, check=True, timeout=60, capture_output=True)
    assert sorted(done.stdout.split()) == ["a", "b", "c"]


def test_the_cluster(admin: Any, cli: Cli, broker: Broker) -> None:
    described = cli("cluster", "describe")
    assert [(node["broker_id"], node["port"]) for node in described["brokers"]] == [(1, broker.port)]
    assert described["controller_id"] == 1 and "ALTER_CONFIGS" in described["authorized_operations"]
    (quorum,) = cli("cluster", "describe-quorum")["topics"]
    assert (quorum["topic_name"], quorum["partitions"][0]["leader_id"]) == ("__cluster_metadata", 1)
    versions = cli("cluster", "api-versions")
    assert versions["Metadata"][1] == HANDLERS[3].versions.last
    (shown,) = cli("cluster", "broker-version", "--broker", "1").values()
    assert int(shown.split(".")[0]) == 4 and admin.get_broker_version_data(1) is not None
    assert isinstance(cli("cluster", "describe-features"), dict)
    refused = cli("cluster", "update-features", "-f", "no.such.feature=1", "--validate-only", code=1)
    assert "Error 95" in refused


def test_log_directories(admin: Any, cli: Cli, broker: Broker, topic: str) -> None:
    produce(broker, topic, 3)
    described = str(cli("cluster", "describe-log-dirs", "--topic", topic))
    assert topic in described and str(broker.data_folder) in described
    admin.alter_replica_log_dirs({(topic, 0, 1): str(broker.data_folder)})


def test_topics_and_partitions(admin: Any, cli: Cli, topic: str) -> None:
    assert topic in cli("topics", "list")
    (shown,) = cli("topics", "describe", "-t", topic)
    assert [part["leader_id"] for part in shown["partitions"]] == [1, 1]
    assert cli("partitions", "create", "-p", f"{topic}:3")["results"][0]["error_code"] == 0
    until(lambda: len(admin.describe_topics([topic])[0]["partitions"]) == 3)
    # Responses with ids can only be printed raw.
    assert topic in cli("partitions", "describe", "-t", topic, form="raw")
    (described,) = admin.describe_topic_partitions([topic])["topics"]
    assert [part["isr_nodes"] for part in described["partitions"]] == [[1], [1], [1]]
    new = topic + "-new"
    (made,) = cli("topics", "create", "-t", new, "--num-partitions", "2")["topics"]
    assert (made["num_partitions"], made["replication_factor"]) == (2, 1)
    cli("topics", "delete", "-t", new)
    until(lambda: new not in admin.list_topics())


def test_elections_and_reassignments(admin: Any, cli: Cli, topic: str) -> None:
    elected = cli("partitions", "elect-leaders", "-p", f"{topic}:0", "--no-raise-errors")
    (result,) = elected["replica_election_results"]
    assert result["partition_result"][0]["error_code"] == 84
    assert cli("partitions", "alter-reassignments", "-r", f"{topic}:0=1") == {f"{topic}:0": None}
    assert cli("partitions", "list-reassignments") == {}
    refused = cli("partitions", "alter-reassignments", "-r", f"{topic}:0=9")
    assert refused == {f"{topic}:0": "InvalidReplicationAssignmentError"}


def test_offsets_and_deleted_records(admin: Any, cli: Cli, broker: Broker, topic: str) -> None:
    produce(broker, topic, 10)
    part = TopicPartition(topic, 0)
    assert admin.list_partition_offsets({part: OffsetSpec.LATEST})[part].offset == 10
    assert "4" in cli("partitions", "delete-records", "-r", f"{topic}:0:4", form="raw")
    assert admin.list_partition_offsets({part: OffsetSpec.EARLIEST})[part].offset == 4
    assert cli("partitions", "list-offsets", "-p", f"{topic}:0:latest")[topic]["0"]["offset"] == 10


def test_groups(admin: Any, cli: Cli, broker: Broker, topic: str) -> None:
    produce(broker, topic, 3)
    group = ("-g", topic)
    assert cli("groups", "alter-offsets", *group, "-o", f"{topic}:0:2") == {f"{topic}:0": "NoError"}
    assert topic in [listed_group["group_id"] for listed_group in cli("groups", "list", "--state", "Empty")]
    assert cli("groups", "describe", *group)[topic]["group_state"] == "Empty"
    shown = cli("groups", "list-offsets", *group)[topic]["0"]
    assert (shown["offset"], shown["latest_offset"], shown["lag"]) == (2, 3, 1)
    reset = cli("groups", "reset-offsets", *group, "-p", f"{topic}:0", "--to-offset", "1")
    assert reset == {topic: {"0": {"error": "NoError", "offset": 1}}}
    assert cli("groups", "delete-offsets", *group, "-p", f"{topic}:0") == {f"{topic}:0": "NoError"}
    assert cli("groups", "delete", *group) == {topic: "OK"}
    assert topic not in [listed_group["group_id"] for listed_group in admin.list_groups()]


def test_members_are_removed(admin: Any, broker: Broker, topic: str) -> None:
    consumer = KafkaConsumer(topic, bootstrap_servers=broker.bootstrap, group_id=topic, group_instance_id="here")
    until(lambda: consumer.poll(timeout_ms=2000) is not None and consumer.assignment())
    (member,) = admin.describe_groups([topic])[topic]["members"]
    assert (member["group_instance_id"], member["client_host"]) == ("here", "/127.0.0.1")
    removed = admin.remove_group_members(topic, [MemberToRemove(group_instance_id="here")])
    assert removed["here"].__name__ == "NoError"
    assert admin.describe_groups([topic])[topic]["members"] == []
    consumer.close()


def test_configs(admin: Any, cli: Cli, topic: str) -> None:
    resource = ("-r", "topic", "-n", topic)

    def modified() -> dict[str, str]:
        shown = cli("configs", "describe", *resource, "--modified")["topic"][topic]
        return {key: entry["value"] for key, entry in shown.items() if entry["config_source"] == "DYNAMIC_TOPIC_CONFIG"}

    assert cli("configs", "alter", *resource, "-c", "retention.ms=9000") == {"topic": {topic: "OK"}}
    until(lambda: modified() == {"retention.ms": "9000"})
    assert cli("configs", "reset", *resource, "-c", "retention.ms") == {"topic": {topic: "OK"}}
    until(lambda: modified() == {})
    old = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"segment.ms": "7000"})
    assert admin.alter_configs([old], incremental=False) == {"topic": {topic: "OK"}}
    until(lambda: modified() == {"segment.ms": "7000"})
    assert topic in cli("configs", "list", "-r", "topic")["topic"]
    assert cli("configs", "list")["broker"] == ["1"]


def test_passwords(admin: Any, cli: Cli, name: str) -> None:
    changed = cli("users", "alter-scram-credentials", "--upsert", f"{name}:SCRAM-SHA-256:hunter2")
    assert changed == {name: None}
    known = {"error": None, "credential_infos": [{"mechanism": 1, "iterations": 4096}]}
    until(lambda: cli("users", "describe-scram-credentials").get(name) == known)
    assert admin.describe_user_scram_credentials([name + "-absent"])[name + "-absent"]["error"]
    assert cli("users", "alter-scram-credentials", "--delete", f"{name}:SCRAM-SHA-256") == {name: None}
    until(lambda: name not in cli("users", "describe-scram-credentials"))


def test_acls_need_an_authorizer(admin: Any, cli: Cli) -> None:
    assert "SecurityDisabledError" in cli("acls", "describe", code=1)
    pattern = ResourcePattern(ResourceType.TOPIC, "t")
    acl = ACL("User:x", "*", ACLOperation.READ, ACLPermissionType.ALLOW, pattern)
    assert admin.create_acls([acl])["failed"] == [SecurityDisabledError]
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    every = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, anything)
    assert [problem for _, _, problem in admin.delete_acls([every])] == [SecurityDisabledError]


def test_transactions_and_producers(admin: Any, cli: Cli, broker: Broker, topic: str) -> None:
    produce(broker, topic, 3)
    listed = cli("transactions", "list")["1"]
    assert not any(topic in transaction["transactional_id"] for transaction in listed)
    part = TopicPartition(topic, 0)
    (producer,) = admin.describe_producers([part])[part].active_producers
    assert (producer.last_sequence, producer.current_transaction_start_offset) == (2, -1)
    assert cli("transactions", "find-hanging") == []
    with pytest.raises(BrokerResponseError):
        admin.describe_transactions(["nobody"])


def test_a_transaction_is_aborted(admin: Any, broker: Broker, topic: str) -> None:
    part = TopicPartition(topic, 0)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"open", partition=0).get(30)
    (state,) = admin.describe_producers([part])[part].active_producers
    assert state.current_transaction_start_offset >= 0
    # It does not say which coordinator's marker it writes.
    admin.abort_transaction(AbortTransactionSpec(part, state.producer_id, state.producer_epoch))
    (state,) = admin.describe_producers([part])[part].active_producers
    assert state.current_transaction_start_offset == -1
    producer.abort_transaction()
    producer.close()
