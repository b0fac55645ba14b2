"""A real client meets faults: it retries, connects again, and notices damage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

import kafkacompat.testing
from kafkacompat.testing.running import RunningBroker

FAST = {"retry.backoff.ms": 10, "retry.backoff.max.ms": 50, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}


@pytest.fixture(scope="module")
def kafka(broker_kind: str) -> Iterator[RunningBroker]:
    if broker_kind != "kafkacompat":
        pytest.skip("faults are this broker's own")
    with kafkacompat.testing.broker() as running:
        yield running


@pytest.fixture
def producer(kafka: RunningBroker) -> Iterator[Any]:
    kafka.faults.clear()
    yield Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0, "enable.idempotence": True, **FAST})
    kafka.faults.clear()


def produce(producer: Any, topic: str, value: str) -> None:
    errors: list[Any] = []
    producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    assert errors == [None]


@pytest.mark.parametrize(
    ("fault", "applied"),
    [
        ({"error": "NOT_LEADER_OR_FOLLOWER", "times": 2}, 2),
        # The records were appended: only the producer's sequence numbers keep them from being appended again.
        ({"error": "REQUEST_TIMED_OUT", "carry_out": True, "times": 1}, 1),
        ({"cut_after_bytes": 10, "times": 1}, 1),
        ({"disconnect": True, "times": 1}, 1),
        ({"duplicate": True, "times": 1}, 1),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_a_producer_writes_its_record_once_whatever_happens(
    kafka: RunningBroker, producer: Any, fault: dict[str, Any], applied: int
) -> None:
    topic = f"written-{'-'.join(fault)}"
    kafka.create_topic(topic)
    number = kafka.faults.add(api="Produce", topic=topic, **fault)
    for value in ("one", "two"):
        produce(producer, topic, value)
    assert [record.value for record in kafka.records(topic)] == [b"one", b"two"]
    assert kafka.faults.counts[number].applied == applied


def test_a_consumer_notices_a_wrong_checksum_and_a_truncated_batch(kafka: RunningBroker) -> None:
    kafka.create_topic("read")
    for value in ("one", "two"):
        kafka.produce("read", [value])
    kafka.faults.add(topic="read", corrupt_crc=True, times=1)
    kafka.faults.add(topic="read", truncate_batch=True, times=1)
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "check.crcs": True, "log_level": 0, **FAST}
    )
    consumer.assign([TopicPartition("read", 0, OFFSET_BEGINNING)])
    seen: list[Any] = []
    while len(seen) < 3:
        message = consumer.poll(10)
        assert message is not None, seen
        seen.append(message.value() if message.error() is None else message.error().code())
    consumer.close()
    assert seen == [KafkaError._BAD_MSG, b"one", b"two"]
    assert [counts.applied for counts in kafka.faults.counts.values()] == [1, 1]
