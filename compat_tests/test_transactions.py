"""Transactions of stock clients: librdkafka, which knows the first protocol, and Java, which knows both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from compat_tests.brokers import Broker
from compat_tests.confluent import assign_from_beginning, consumer_of, create_topic, produce, read
from compat_tests.conftest import MakeBroker
from compat_tests.java_tools import run_java
from compat_tests.same_answers.transactions import await_end, make_describe_request
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsResponse

TOOLS = "org.apache.kafka.tools"
QUICK_TIMEOUTS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}


def producer_of(broker: Broker, transactional_id: str, **options: object) -> Producer:
    """A transactional producer that is ready."""
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "transactional.id": transactional_id,
        "linger.ms": 0,
        "log_level": 0,
        **options,
    }
    producer = Producer(settings)
    producer.init_transactions(30)
    return producer


def write_values(producer: Producer, topic: str, values: Sequence[str], partitions: int = 1) -> None:
    """Produce in the open transaction, and wait until the broker has it all."""
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % partitions)
    assert producer.flush(30) == 0


def read_committed(broker: Broker, topic: str, partitions: int = 1) -> list[str]:
    """Return the committed records up to the end that a consumer may read."""
    consumer = consumer_of(
        broker, f"{topic}-reader", **{"isolation.level": "read_committed", "enable.partition.eof": True}
    )
    assign_from_beginning(consumer, topic, range(partitions))
    values: list[str] = []
    ends: set[int] = set()
    with closing(consumer):
        while len(ends) < partitions:
            message = consumer.poll(10)
            assert message is not None
            if (error := message.error()) is None:
                values.append(message.value().decode())
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ends.add(message.partition())
    return values


def test_the_committed_is_read_and_the_aborted_is_not(broker: Broker, name: str) -> None:
    create_topic(broker, name, 2)
    producer = producer_of(broker, name)
    for number in range(6):
        producer.begin_transaction()
        write_values(producer, name, [f"{number}-{index}" for index in range(4)], 2)
        if number % 3 == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    wanted = sorted(f"{number}-{index}" for number in (0, 2, 3, 5) for index in range(4))
    assert sorted(read_committed(broker, name, 2)) == wanted
    reader = consumer_of(broker, f"{name}-all", **{"isolation.level": "read_uncommitted"})
    assign_from_beginning(reader, name, range(2))
    with closing(reader):
        assert len(read(reader, 24)) == 24


def test_read_committed_does_not_read_an_open_transaction(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    producer = producer_of(broker, name)
    produce(broker, name, ["before"])
    producer.begin_transaction()
    write_values(producer, name, ["open"])
    produce(broker, name, ["behind"])
    assert read_committed(broker, name) == ["before"]
    producer.commit_transaction(30)
    assert until(lambda: len(values := read_committed(broker, name)) == 3 and values) == ["before", "open", "behind"]


def test_offsets_are_committed_with_the_records_that_came_of_them(broker: Broker, name: str) -> None:
    """Consume, transform, produce: records consumed in an aborted transaction are consumed again."""
    create_topic(broker, name, 1)
    create_topic(broker, f"{name}-out")
    produce(broker, name, [str(number) for number in range(10)])
    consumer = consumer_of(broker, name, **{"isolation.level": "read_committed"})
    producer = producer_of(broker, name)
    consumer.subscribe([name])
    with closing(consumer):
        for commit in (True, False, True):
            values = [message.value().decode() for message in read(consumer, 3)]
            producer.begin_transaction()
            write_values(producer, f"{name}-out", [f"{value}!" for value in values])
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 30
            )
            if commit:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)
                (position,) = consumer.committed(consumer.assignment(), 30)
                consumer.seek(position)
        (position,) = consumer.committed(consumer.assignment(), 30)
    assert position.offset == 6
    assert read_committed(broker, f"{name}-out") == ["0!", "1!", "2!", "3!", "4!", "5!"]


def test_a_new_producer_fences_the_old_one(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    old = producer_of(broker, name)
    old.begin_transaction()
    write_values(old, name, ["old"])
    new = producer_of(broker, name)
    with pytest.raises(KafkaException) as caught:
        old.commit_transaction(30)
    error: KafkaError = caught.value.args[0]
    assert error.fatal() and error.code() == KafkaError._FENCED
    new.begin_transaction()
    write_values(new, name, ["new"])
    new.commit_transaction(30)
    assert until(lambda: read_committed(broker, name)) == ["new"]


def test_a_transaction_that_is_left_open_is_aborted_in_time(make_broker: MakeBroker, name: str) -> None:
    broker = make_broker(QUICK_TIMEOUTS)
    create_topic(broker, name)
    producer = producer_of(broker, name, **{"transaction.timeout.ms": 1000})
    producer.begin_transaction()
    write_values(producer, name, ["left"])
    with closing(Transcript(broker.port)) as script:
        until(lambda: await_end(script, name) == "CompleteAbort")
        with pytest.raises(KafkaException):
            producer.commit_transaction(30)
    produce(broker, name, ["behind"])
    assert read_committed(broker, name) == ["behind"]


def test_a_transaction_outlives_a_kill_of_the_broker(make_broker: MakeBroker, name: str) -> None:
    broker = make_broker()
    create_topic(broker, name, 2)
    producer = producer_of(broker, name)
    for number in range(2):
        producer.begin_transaction()
        write_values(producer, name, [f"{number}-before"], 2)
        broker.kill()
        broker.start()
        write_values(producer, name, [f"{number}-after-0", f"{number}-after-1"], 2)
        if number % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    wanted = sorted(f"0-{word}" for word in ("before", "after-0", "after-1"))
    assert until(lambda: len(values := read_committed(broker, name, 2)) == 3 and sorted(values)) == wanted


# Java


def run_tool(broker: Broker, *command: str) -> str:
    """Return the output of kafka-transactions."""
    return run_java(f"{TOOLS}.TransactionsCommand", ["--bootstrap-server", broker.bootstrap, *command]).stdout


def test_javas_transactions_with_an_epoch_of_their_own(broker: Broker, name: str) -> None:
    create_topic(broker, name, 3)
    options = ["--topic", name, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"]
    transactions = ["--transactional-id", name, "--transaction-duration-ms", "50"]
    properties = ["--producer-props", f"bootstrap.servers={broker.bootstrap}", "linger.ms=1"]
    shown = run_java(f"{TOOLS}.ProducerPerformance", [*options, *transactions, *properties]).stdout
    assert re.search(r"20000 records sent", shown)
    until(lambda: len(read_committed(broker, name, 3)) == 20_000)
    with closing(Transcript(broker.port)) as script:
        assert await_end(script, name) == "CompleteCommit"
        (described,) = script.client.call(
            make_describe_request(name), DescribeTransactionsResponse, 0
        ).transaction_states
    # Every transaction had one, so there were several.
    assert described.producer_epoch >= 3


@pytest.mark.parametrize("options", [["--group-mode"], ["--group-mode", "--use-group-metadata"]], ids=len)
def test_javas_copier_copies_each_message_once(broker: Broker, name: str, options: list[str]) -> None:
    source, target = name, f"{name}-copy"
    create_topic(broker, source)
    create_topic(broker, target)
    values = [str(number) for number in range(1000)]
    produce(broker, source, values)
    run_java(
        f"{TOOLS}.TransactionalMessageCopier",
        [
            *("--broker-list", broker.bootstrap, "--input-topic", source, "--input-partition", "0"),
            *("--output-topic", target, "--max-messages", "1000", "--consumer-group", name, "--transaction-size", "50"),
            *("--transactional-id", name, "--enable-random-aborts", *options),
        ],
    )
    assert until(lambda: len(copied := read_committed(broker, target)) == 1000 and copied) == values


@pytest.mark.tools
def test_tools_list_and_describe_transactions(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    producer = producer_of(broker, name)
    producer.begin_transaction()
    write_values(producer, name, ["open"])
    listed = next(line for line in run_tool(broker, "list").splitlines() if line.startswith(name))
    assert re.match(rf"{name}\s+1\s+\d+\s+Ongoing", listed)
    described = run_tool(broker, "describe", "--transactional-id", name)
    assert re.search(rf"1\s+{name}\s+\d+\s+0\s+Ongoing\s+60000\s+\S+\s+\d+\s+{name}-0", described)
    of_producers = run_tool(broker, "describe-producers", "--topic", name, "--partition", "0")
    assert re.search(r"\n\d+\s+0\s+-?\d+\s+0\s+\d+\s+0\s*$", of_producers)
    produce(broker, name, ["behind"])
    assert read_committed(broker, name) == []
    run_tool(broker, "abort", "--topic", name, "--partition", "0", "--start-offset", "0")
    assert until(lambda: read_committed(broker, name)) == ["behind"]
    # The producer does not know, and its commit has no effect any more.
    producer.commit_transaction(30)
    assert read_committed(broker, name) == ["behind"]
