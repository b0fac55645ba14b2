"""Kafka's verifiable producer and consumer, and its tools for groups and for transactions that hang."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.conftest import MakeBroker
from compat_tests.frameworks.programme import POM, Programme, serves_transactions, start_java
from compat_tests.frameworks.reading import Reader
from compat_tests.java_tools import run_java
from compat_tests.raw_client import produce_request
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.record_batch import build_batch

pytestmark = pytest.mark.frameworks

TOOLS = "org.apache.kafka.tools"
PARTITIONS = 3
MESSAGES = 5000
HOUR_MS = 3_600_000


def run_tool(broker: Broker, main_class: str, *arguments: str) -> str:
    """Run a tool to its end and return its output."""
    return run_java(f"{TOOLS}.{main_class}", ["--bootstrap-server", broker.bootstrap, *arguments], pom=POM).stdout


def list_events(text: str, name: str) -> list[dict[str, Any]]:
    """Return the events of one name in a verifiable client's output."""
    events = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return [event for event in events if event["name"] == name]


def start_consumer(broker: Broker, group: str, log: Path, *options: str) -> Programme:
    """Start a verifiable consumer that prints every record."""
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", group, "--group-id", group, "--verbose", *options]
    return start_java(f"{TOOLS}.VerifiableConsumer", [*arguments, "--reset-policy", "earliest"], log)


def list_values(programme: Programme) -> list[str]:
    """Return the values that a verifiable consumer printed."""
    return [event["value"] for event in list_events(programme.log, "record_data")]


@pytest.mark.parametrize("acks", ["1", "-1"])
def test_verifiable_clients(broker: Broker, name: str, tmp_path: Path, acks: str) -> None:
    create_topic(broker, name, PARTITIONS)
    options = ["--topic", name, "--max-messages", str(MESSAGES), "--acks", acks]
    produced = run_tool(broker, "VerifiableProducer", *options)
    (summary,) = list_events(produced, "tool_data")
    assert (summary["sent"], summary["acked"]) == (MESSAGES, MESSAGES)
    acknowledged = [event["value"] for event in list_events(produced, "producer_send_success")]
    assert sorted(acknowledged, key=int) == [str(number) for number in range(MESSAGES)]
    with start_consumer(broker, name, tmp_path / "log", "--max-messages", str(MESSAGES)) as reading:
        assert reading.wait(120) == 0, reading.log
        assert sorted(list_values(reading), key=int) == sorted(acknowledged, key=int)
        commits = [commit for event in list_events(reading.log, "offsets_committed") for commit in event["offsets"]]
    last = {commit["partition"]: commit["offset"] for commit in commits}
    assert sum(last.values()) == MESSAGES
    described = run_tool(broker, "consumer.group.ConsumerGroupCommand", "--describe", "--group", name)
    rows = re.findall(rf"{name}\s+{name}\s+(\d)\s+(\d+)\s+(\d+)\s+(\d+)", described)
    assert {(int(number), int(current)) for number, current, _, _ in rows} == set(last.items())
    assert {lag for _, _, _, lag in rows} == {"0"}


def test_two_verifiable_consumers_share_a_group(broker: Broker, name: str, tmp_path: Path) -> None:
    create_topic(broker, name, PARTITIONS)
    quick = ("--session-timeout", "6000")
    with (
        start_consumer(broker, name, tmp_path / "a", *quick) as a,
        start_consumer(broker, name, tmp_path / "b", *quick) as b,
    ):
        a.until(lambda: all(list_events(consumer.log, "partitions_assigned") for consumer in (a, b)))
        group = ("--group", name)
        until(
            lambda: "Stable" in run_tool(broker, "consumer.group.ConsumerGroupCommand", "--describe", "--state", *group)
        )
        members = run_tool(broker, "consumer.group.ConsumerGroupCommand", "--describe", "--members", *group)
        assert sorted(re.findall(rf"{name}\s+\S+\s+\S+\s+\S+\s+(\d)", members)) == ["1", "2"]
        # Without keys a few batches hold all messages, so that a partition can stay empty.
        options = ("--max-messages", str(MESSAGES), "--acks", "-1", "--repeating-keys", "100")
        run_tool(broker, "VerifiableProducer", "--topic", name, *options)
        a.until(lambda: len(list_values(a)) + len(list_values(b)) >= MESSAGES)
        assert all(list_values(consumer) for consumer in (a, b))
        values = list_values(a) + list_values(b)
        assert sorted(values, key=int) == [str(number) for number in range(MESSAGES)]
        # After a kill, the other consumer reads all later records, and only uncommitted earlier records.
        b.kill()
        more = ("--max-messages", "100", "--acks", "-1", "--repeating-keys", "10", "--value-prefix", "7")
        run_tool(broker, "VerifiableProducer", "--topic", name, *more)
        wanted = {f"7.{number}" for number in range(100)}
        a.until(lambda: wanted <= set(list_values(a)))


Transactions = Callable[..., str]
Records = list[tuple[int, "bytes | None", "bytes | None", Sequence[tuple[str, "bytes | None"]]]]


@pytest.fixture
def transactions(broker: Broker) -> Transactions:
    """Run kafka-transactions.sh with these arguments, after the address of a broker."""
    if not serves_transactions(broker):
        pytest.skip("the broker does not serve transactions yet")
    return lambda at, *arguments: run_tool(at, "TransactionsCommand", *arguments)


def leave_open(broker: Broker, topic: str, producer_id: int) -> None:
    """Open a transaction of an hour ago that no coordinator knows."""
    records: Records = [(int(time.time() * 1000) - HOUR_MS, None, b"never seen", [])]
    batch = build_batch(records, producer_id=producer_id, producer_epoch=3, base_sequence=0, transactional=True)
    request = produce_request(topic, {0: batch})
    request.transactional_id = topic
    with closing(Transcript(broker.port)) as script:
        answer = script.client.call(request, ProduceResponse, 9)
    assert [partition.error_code for partition in answer.responses[0].partition_responses] == [0]


def write_and_read(broker: Broker, topic: str) -> list[str]:
    """Write another record; return the committed records that a reader sees up to it."""
    plain = Producer({"bootstrap.servers": broker.bootstrap})
    plain.produce(topic, value="seen")
    assert plain.flush(60) == 0
    with closing(Reader(broker, topic, 1)) as reader:
        return [record.texts[1] for record in until(reader.read)]


def in_a_transaction(broker: Broker, name: str) -> Producer:
    """A producer that has written to a new topic, and has not ended its transaction."""
    create_topic(broker, name)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(name, value="never seen")
    assert producer.flush(60) == 0
    return producer


def test_hanging_transactions_are_found_and_aborted(
    make_broker: MakeBroker, name: str, transactions: Transactions
) -> None:
    broker = make_broker({"transaction.partition.verification.enable": "false"})
    create_topic(broker, name)
    leave_open(broker, name, 4711)
    hanging = transactions(broker, "find-hanging", "--broker-id", "1")
    assert re.search(rf"^{name}\s+0\s+4711\s+3\s+-?\d+\s+0\s+\d+\s+\d+", hanging, re.MULTILINE)
    open_ones = transactions(broker, "describe-producers", "--topic", name, "--partition", "0")
    assert re.search(r"^4711\s+3\s+-?\d+\s+0\s+\d+\s+0\s*$", open_ones, re.MULTILINE)
    transactions(broker, "abort", "--topic", name, "--partition", "0", "--start-offset", "0")
    assert write_and_read(broker, name) == ["seen"]
    assert name not in transactions(broker, "find-hanging", "--broker-id", "1")


def test_transactions_are_listed_described_and_aborted(broker: Broker, name: str, transactions: Transactions) -> None:
    producer = in_a_transaction(broker, name)
    (listed,) = (line for line in transactions(broker, "list").splitlines() if line.startswith(name))
    assert listed.split()[3] == "Ongoing"
    assert re.search(rf"\b{name}-0\b", transactions(broker, "describe", "--transactional-id", name))
    # However short the time a transaction may take: the coordinator knows this one.
    limits = ("--topic", name, "--partition", "0", "--max-transaction-timeout", "0")
    assert name not in transactions(broker, "find-hanging", *limits)
    transactions(broker, "abort", "--topic", name, "--partition", "0", "--start-offset", "0")
    assert write_and_read(broker, name) == ["seen"]
    producer.abort_transaction(60)


def test_a_producers_transactions_are_terminated(broker: Broker, name: str, transactions: Transactions) -> None:
    producer = in_a_transaction(broker, name)
    transactions(broker, "forceTerminateTransaction", "--transactionalId", name)
    assert write_and_read(broker, name) == ["seen"]
    assert re.search(rf"\s{name}\s+\d+\s+\d+\s+Empty\s", transactions(broker, "describe", "--transactional-id", name))
    with pytest.raises(KafkaException, match="fenced"):
        producer.commit_transaction(60)
