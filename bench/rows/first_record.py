"""The time from subscribe to the first record, for the first group that a broker sees."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer
from kafka import KafkaConsumer

from bench.load import Load, produce
from bench.row import Goal, Options, Row, Samples
from bench.topics import create_topic
from compat_tests.brokers import Broker
from compat_tests.java_tools import compile_java, run_java
from compat_tests.waiting import pause

PROGRAM = Path(__file__).resolve().parent.parent / "java" / "FirstRecord.java"
SETTLING_SECONDS = 2
BOUND_MS = 150


def of_librdkafka(broker: Broker, topic: str) -> Samples:
    """Read with confluent-kafka, whose consumer connects in the background after its creation."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest", "log_level": "0"}
    )
    begun = time.monotonic()
    consumer.subscribe([topic])
    while (message := consumer.poll(1)) is None or message.error() is not None:
        pass
    taken = time.monotonic() - begun
    consumer.close()
    return {"first record ms": taken * 1e3}


def of_kafka_python(broker: Broker, topic: str) -> Samples:
    """Read with kafka-python, whose consumer connects during its creation."""
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=topic, auto_offset_reset="earliest")
    begun = time.monotonic()
    consumer.subscribe([topic])
    while not consumer.poll(timeout_ms=1000):
        pass
    taken = time.monotonic() - begun
    consumer.close()
    return {"first record ms": taken * 1e3}


def of_java(broker: Broker, topic: str) -> Samples:
    """Read with the Java client, which connects in its first poll; then with a second one in the same JVM, from another new broker."""
    with type(broker)(broker.folder / "other", broker.properties) as other:
        arguments = [broker.bootstrap, topic, other.bootstrap, topic_with_records(other)]
        done = run_java("FirstRecord", arguments, extra_class_path=[compile_java(PROGRAM)])
    first, following = map(float, done.stdout.split())
    return {"first record ms": following, "first record ms, client not loaded": first}


def topic_with_records(broker: Broker) -> str:
    """Return a topic that no group has read, after the broker has become idle."""
    topic = create_topic(broker, 1)
    produce(broker.port, topic, Load.of(), partitions=1, requests=1)
    pause(SETTLING_SECONDS)
    return topic


def measure(read: Callable[[Broker, str], Samples], broker: Broker, _: Options) -> Samples:
    """Let a client read the first record on a new broker."""
    with broker:
        return read(broker, topic_with_records(broker))


def make_row(name: str, client: str, read: Callable[[Broker, str], Samples], more: str) -> Row:
    return Row(
        f"first-record-{name}",
        f"First record of a consumer of {client}",
        "From subscribe to the first record that a poll returns, on a broker that has just started over an empty folder. The "
        "group is the first that the broker sees, group.initial.rebalance.delay.ms is 0, and the client has its default "
        f"settings, except for the offset at which it begins to read. {more}",
        partial(measure, read),
        [Goal("first record ms", BOUND_MS, at_least=False, is_ratio=False)],
        properties={"group.initial.rebalance.delay.ms": "0"},
        fresh=True,
    )


ROWS = [
    make_row(
        "java",
        "the Java client",
        of_java,
        "The consumer is created before and connects in its first poll. It is the second consumer of its JVM. The first one read "
        "from another new broker; its time (*client not loaded*) is mostly that of loading the client's classes.",
    ),
    make_row(
        "librdkafka",
        "librdkafka",
        of_librdkafka,
        "The consumer is created before and connects meanwhile. Two waits are the client's own: 100 ms before it requests the "
        "first offset of a partition without a committed one, and usually 50 ms between its first two connections.",
    ),
    make_row(
        "kafka-python",
        "kafka-python",
        of_kafka_python,
        "The consumer is created, and so connected, before. It requests the topic's partitions 100 ms later at the earliest. If "
        "it has joined by then, it pauses for 100 ms in its poll before it joins again.",
    ),
]
