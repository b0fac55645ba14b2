"""Helpers of tests with confluent-kafka: they create topics, produce values and read messages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
)

from compat_tests.brokers import Broker
from compat_tests.waiting import until


@cache
def admin_of(broker: Broker) -> AdminClient:
    """Return a broker's admin client; its answers come only while it is referenced, so it is kept."""
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


def create_topic(broker: Broker, topic: str, partitions: int = 1, **config: str) -> None:
    names = {key.replace("_", "."): value for key, value in config.items()}
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=names)
    admin_of(broker).create_topics([new])[topic].result(30)


def produce(broker: Broker, topic: str, values: list[str], **options: Any) -> list[tuple[int, int]]:
    """Produce the values, keyed by their ends; return (partition, offset) of each acknowledged one."""
    acknowledged: list[tuple[int, int]] = []

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        acknowledged.append((message.partition(), message.offset()))

    settings = {"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **options}
    producer = Producer(settings)
    for value in values:
        producer.produce(topic, key=value[-20:], value=value, on_delivery=delivered)
    assert producer.flush(60) == 0
    return acknowledged


def consumer_of(broker: Broker, group: str, **options: Any) -> Consumer:
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500,
        "fetch.wait.max.ms": 100,
        **options,
    }
    return Consumer(settings)


def read(consumer: Consumer, count: int) -> list[Any]:
    """Poll until *count* messages have come."""
    messages: list[Any] = []

    def enough() -> bool:
        message = consumer.poll(0.2)
        if message is not None:
            assert message.error() is None, message.error()
            messages.append(message)
        return len(messages) >= count

    until(enough, every_seconds=0)
    return messages


def assign_from_beginning(consumer: Consumer, topic: str, partitions: Iterable[int] = (0,)) -> None:
    """Have a consumer read these partitions from their first record on.

    It asks for the topic's metadata first: librdkafka looks up a beginning whose leader it does not know yet only half
    a second later.
    """
    consumer.list_topics(topic, timeout=30)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])


def read_all(broker: Broker, topic: str, count: int, partitions: int = 1) -> list[Any]:
    """Read *count* messages from the beginning of all partitions, without a group."""
    consumer = consumer_of(broker, f"reader-of-{topic}")
    assign_from_beginning(consumer, topic, range(partitions))
    messages = read(consumer, count)
    consumer.close()
    return messages
