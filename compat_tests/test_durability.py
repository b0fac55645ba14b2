"""The promises of the levels of durability, tested by a power failure under load."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.brokers import Broker
from compat_tests.power_failure import MortalBroker
from compat_tests.test_restart import QUIET, create_topic, read_partition
from compat_tests.waiting import until

FSYNC = {"kafkacompat.acks.after": "fsync"}
FLUSH_EACH = {"log.flush.interval.messages": "1"}
PAGE_CACHE: dict[str, str] = {}
SMALL_SEGMENTS: dict[str, Any] = {"segment.bytes": "1048576"}
GROUP = {"group.id": "g", "enable.auto.commit": False, "auto.offset.reset": "earliest", **QUIET}


@pytest.fixture(autouse=True)
def only_ours(broker_kind: str) -> None:
    """Kafka's syncs cannot be seen from here."""
    if broker_kind != "kafkacompat":
        pytest.skip("its syncs are counted inside the process, which is Python's")


@contextmanager
def run_mortal_broker(tmp_path: Path, properties: dict[str, str]) -> Iterator[MortalBroker]:
    with MortalBroker(tmp_path / "node", properties) as broker:
        yield broker


def produce_until_asked(
    broker: Broker, topic: str, acks: str, until_asked: threading.Event, stored: dict[int, bytes]
) -> None:
    """Write numbers to partition 0 until asked to stop; *stored* gets the acknowledged ones by offset."""

    def delivered(error: object, message: Any) -> None:
        if error is None:
            stored[message.offset()] = message.value()

    idempotent = {"enable.idempotence": True} if acks == "all" else {}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": acks, "linger.ms": 1, **idempotent, **QUIET})
    number = 0
    while not until_asked.is_set():
        producer.produce(topic, b"%s %d" % (acks.encode(), number), partition=0, on_delivery=delivered)
        number += 1
        producer.poll(0.001)
    producer.purge()
    producer.flush(0)


def commit_until_asked(broker: Broker, topic: str, until_asked: threading.Event, committed: list[int]) -> None:
    """Commit one offset after the other until asked to stop, each once the one before is acknowledged."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **GROUP})
    offset = 0
    while not until_asked.is_set():
        offset += 1
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        committed.append(offset)
    consumer.close()


def load_while_power_fails(broker: MortalBroker, topic: str) -> tuple[dict[int, bytes], int]:
    """Produce with every kind of acks and commit offsets; the power fails after 500 acknowledgements with acks=1 and with all.

    Return the acknowledgements before it: records by their offsets, and the last commit. The broker is up again.
    """
    stored: dict[str, dict[int, bytes]] = {"1": {}, "all": {}, "0": {}}
    committed: list[int] = []
    stop = threading.Event()
    works = [partial(produce_until_asked, broker, topic, acks, stop, records) for acks, records in stored.items()]
    works.append(partial(commit_until_asked, broker, topic, stop, committed))
    # If the test fails before the restart, a commit waits for a broker for ever.
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        until(lambda: min(len(stored["1"]), len(stored["all"]), 10 * len(committed)) >= 500)
        broker.lose_power()
    finally:
        stop.set()
    acknowledged, last_commit = {**stored["1"], **stored["all"]}, committed[-1]
    broker.start()  # a commit under way is tried until there is a broker again
    for thread in threads:
        thread.join()
    return acknowledged, last_commit


def committed_offset(broker: Broker, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **GROUP})
    (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=20)
    consumer.close()
    offset: int = committed.offset
    return offset


@pytest.mark.parametrize("properties", [FSYNC, FLUSH_EACH], ids=["fsync", "flush.messages=1"])
def test_nothing_acknowledged_is_lost_with_the_power(tmp_path: Path, name: str, properties: dict[str, str]) -> None:
    with run_mortal_broker(tmp_path, {**properties, "offsets.topic.num.partitions": "1"}) as broker:
        create_topic(broker, name, **SMALL_SEGMENTS)
        stored, last_commit = load_while_power_fails(broker, name)
        records = dict(read_partition(broker, name, len(stored)))
        assert stored.items() <= records.items()
        assert committed_offset(broker, name) >= last_commit


def test_unsynced_records_survive_a_kill_but_no_power_failure(tmp_path: Path, name: str) -> None:
    with run_mortal_broker(tmp_path, PAGE_CACHE) as broker:
        create_topic(broker, name)
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for number in range(100):
            producer.produce(name, b"%d" % number, partition=0)
        assert producer.flush(20) == 0
        broker.kill()
        broker.start()
        assert len(read_partition(broker, name, 100)) == 100
        broker.lose_power()
        broker.start()
        assert read_partition(broker, name, 0) == []


def one_by_one(broker: Broker, topic: str, count: int) -> None:
    """Write that many records, each when the one before is acknowledged."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, **QUIET})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
        assert producer.flush(20) == 0


def test_producers_at_the_same_time_share_syncs_and_one_alone_gets_one_for_each_record(
    tmp_path: Path, name: str
) -> None:
    with run_mortal_broker(tmp_path, FSYNC) as broker:
        create_topic(broker, name)
        one_by_one(broker, name, 50)
        alone = len(broker.syncs(broker.log_file(name)))
        assert alone >= 50
        threads = [threading.Thread(target=one_by_one, args=(broker, name, 30)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(read_partition(broker, name, 650)) == 650
        together = len(broker.syncs(broker.log_file(name))) - alone
        assert together < 20 * 30 / 2
