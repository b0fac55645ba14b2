"""Consume, transform, produce: each message comes out once, however often the broker is killed in between.

Clients of the second transaction protocol are Java's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.conftest import MakeBroker
from compat_tests.java_tools import java_command
from compat_tests.test_transactions import TOOLS, producer_of, read_committed
from compat_tests.waiting import until

pytestmark = pytest.mark.tools

PARTITIONS = 2
COUNT = 70
ATTEMPTS = 10
MOMENTS = ("", "consumed", "produced", "offsets sent", "committed")


# When all brokers are gone librdkafka 2.16 forgets them, but for the coordinator of a group that it has looked up: it asks that
# broker, which never comes back, about offsets in transactions for ever.
CLIENT = {"metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 200, "log_level": 0}
READER = {"enable.auto.commit": False, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}


class Copier:
    """Copies a topic to another, a few messages a transaction; aborts and goes back where that is all that is left."""

    def __init__(self, broker: Broker, name: str, protocol: str) -> None:
        self.broker = broker
        self.target = f"{name}-copy"
        self.producer = producer_of(broker, name, **CLIENT)
        bootstrap = {"bootstrap.servers": broker.bootstrap, "group.id": name, "group.protocol": protocol}
        self.consumer = Consumer({**bootstrap, **READER, **CLIENT})
        self.consumer.subscribe([name])

    def step(self, kill_when: str) -> None:
        """Copy the next records, and kill the broker at some moment."""
        messages = until(lambda: [message for message in self.consumer.consume(10, 0.5) if message.error() is None])
        next_offsets = {message.partition(): message.offset() + 1 for message in messages}
        offsets = [TopicPartition(messages[0].topic(), partition, offset) for partition, offset in next_offsets.items()]
        group = self.consumer.consumer_group_metadata()
        self.kill(kill_when == "consumed")
        self.producer.begin_transaction()
        for message in messages:
            self.producer.produce(self.target, message.value(), partition=message.partition())
        self.producer.flush(60)
        self.kill(kill_when == "produced")
        try:
            self.insist(self.producer.send_offsets_to_transaction, offsets, group)
            self.kill(kill_when == "offsets sent")
            self.insist(self.producer.commit_transaction)
        except KafkaException as problem:
            assert problem.args[0].txn_requires_abort(), problem
            self.insist(self.producer.abort_transaction)
            self.go_back()
        self.kill(kill_when == "committed")

    def insist(self, request: Any, *arguments: Any) -> None:
        """Ask again where the client says that it may help."""
        for number in range(1, ATTEMPTS + 1):
            try:
                request(*arguments, 60)
            except KafkaException as problem:
                if number == ATTEMPTS or not problem.args[0].retriable():
                    raise
            else:
                return

    def go_back(self) -> None:
        for partition in self.consumer.committed(self.consumer.assignment(), 60):
            self.consumer.seek(TopicPartition(partition.topic, partition.partition, max(partition.offset, 0)))

    def kill(self, is_now: bool) -> None:
        if is_now:
            self.broker.kill()
            self.broker.start()

    def is_done(self) -> bool:
        partitions = [TopicPartition(self.target.removesuffix("-copy"), number) for number in range(PARTITIONS)]
        committed = self.consumer.committed(partitions, 60)
        return sum(int(max(partition.offset, 0)) for partition in committed) >= COUNT


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_each_message_comes_out_once(make_broker: MakeBroker, name: str, protocol: str) -> None:
    broker = make_broker()
    create_topic(broker, name, PARTITIONS)
    create_topic(broker, f"{name}-copy", PARTITIONS)
    values = [str(number) for number in range(COUNT)]
    assert len(produce(broker, name, values)) == COUNT
    copier = Copier(broker, name, protocol)
    with closing(copier.consumer):
        for number in range(200):
            copier.step(MOMENTS[number % len(MOMENTS)])
            if copier.is_done():
                break
    until(lambda: len(read_committed(broker, copier.target, PARTITIONS)) >= COUNT)
    assert sorted(read_committed(broker, copier.target, PARTITIONS), key=int) == values


@pytest.mark.parametrize("options", [["--group-mode"], ["--group-mode", "--use-group-metadata"]], ids=len)
def test_each_message_that_javas_copier_copies_comes_out_once(
    make_broker: MakeBroker, name: str, options: Sequence[str]
) -> None:
    broker = make_broker()
    create_topic(broker, name)
    create_topic(broker, f"{name}-copy")
    values = [str(number) for number in range(5000)]
    produce(broker, name, values)
    command = java_command(
        f"{TOOLS}.TransactionalMessageCopier",
        [
            *("--broker-list", broker.bootstrap, "--input-topic", name, "--input-partition", "0"),
            *("--output-topic", f"{name}-copy", "--max-messages", str(len(values)), "--consumer-group", name),
            *("--transaction-size", "20", "--transactional-id", name, "--enable-random-aborts", *options),
        ],
    )
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as copier:
        try:
            for number in range(1, 6):
                until(lambda: len(read_committed(broker, f"{name}-copy")) >= 600 * number, every_seconds=0.02)  # noqa: B023
                broker.kill()
                broker.start()
            assert copier.wait(120) == 0
        finally:
            copier.kill()
    until(lambda: len(read_committed(broker, f"{name}-copy")) >= len(values))
    assert read_committed(broker, f"{name}-copy") == values
