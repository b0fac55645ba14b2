"""Three clients read all nasty topics at once, and receive what the descriptions say; ``make nasty`` tries all others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AiokafkaPartition
from confluent_kafka import OFFSET_END, Consumer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition

import kafkacompat.testing
from compat_tests.brokers import ROOT
from compat_tests.matrix.records import Record
from compat_tests.nasty.judging import compare
from compat_tests.page_blocks import find_blocks
from kafkacompat.testing.nasty import NastyTopic

PATIENCE_S = 20
Place = tuple[str, Record]


@pytest.fixture(scope="module")
def kafka() -> Iterator[kafkacompat.testing.RunningBroker]:
    with kafkacompat.testing.broker() as running:
        yield running


@pytest.fixture(scope="module")
def topics(kafka: kafkacompat.testing.RunningBroker) -> Sequence[NastyTopic]:
    nasty = kafka.nasty
    jumping = nasty.retention_jump("retention", records=400)
    losing = nasty.unclean_truncation("truncation")
    return [
        nasty.transaction_gaps("gaps"),
        nasty.aborted_tail("tail"),
        nasty.compacted_holes("holes"),
        nasty.empty_batch("empty"),
        jumping.jump(350),
        nasty.out_of_order_timestamps("timestamps"),
        nasty.mixed_timestamp_types("types"),
        nasty.mixed_formats("formats"),
        nasty.largest_record("largest"),
        losing.truncate(),
        nasty.many_partitions("partitions", partitions=200),
    ]


def read_by_confluent_kafka(bootstrap: str, places: Sequence[tuple[str, int]], level: str, count: int) -> list[Place]:
    settings = {"group.id": "g", "isolation.level": level, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([ConfluentPartition(topic, index, 0) for topic, index in places])
    read: list[Place] = []
    ends_s = time.monotonic() + PATIENCE_S
    while len(read) < count and time.monotonic() < ends_s:
        for message in consumer.consume(count, 0.1):
            assert message.error() is None, message.error()
            where = (message.topic(), message.partition(), message.offset(), message.timestamp()[1])
            read.append(make_place(*where, message.key(), message.value()))
    consumer.close()
    return read


def read_by_kafka_python(bootstrap: str, places: Sequence[tuple[str, int]], level: str, count: int) -> list[Place]:
    settings = {"isolation_level": level, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, **settings)
    consumer.assign([KafkaPythonPartition(*place) for place in places])
    read: list[Place] = []
    ends_s = time.monotonic() + PATIENCE_S
    while len(read) < count and time.monotonic() < ends_s:
        for records in consumer.poll(100, max_records=count).values():
            read += [as_place(record) for record in records]
    consumer.close()
    return read


def read_by_aiokafka(bootstrap: str, places: Sequence[tuple[str, int]], level: str, count: int) -> list[Place]:
    async def read_all() -> list[Place]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level=level, auto_offset_reset="earliest", enable_auto_commit=False
        )
        consumer.assign([AiokafkaPartition(*place) for place in places])
        await consumer.start()
        read: list[Place] = []
        ends_s = time.monotonic() + PATIENCE_S
        while len(read) < count and time.monotonic() < ends_s:
            for records in (await consumer.getmany(timeout_ms=100)).values():
                read += [as_place(record) for record in records]
        await consumer.stop()
        return read

    return asyncio.run(read_all())


def as_place(record: object) -> Place:
    """Return a record of kafka-python or aiokafka."""
    names = ("topic", "partition", "offset", "timestamp", "key", "value")
    return make_place(*(getattr(record, name) for name in names))


def make_place(
    topic: str, partition: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None
) -> Place:
    """Return a record in the form of the matrix, with its topic."""
    key_text, value_text = (None if content is None else bytes(content).decode() for content in (key, value))
    return topic, Record(partition, offset, key_text, value_text, timestamp)


def test_offsets_are_found_by_time(kafka: kafkacompat.testing.RunningBroker, topics: Sequence[NastyTopic]) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g"})
    for topic in topics:
        for lookup in topic.lookups:
            wanted = ConfluentPartition(topic.name, lookup.partition, lookup.timestamp)
            (partition,) = consumer.offsets_for_times([wanted], PATIENCE_S)
            assert partition.offset == (OFFSET_END if lookup.offset is None else lookup.offset), lookup
    consumer.close()


def test_the_programs_of_the_page_run() -> None:
    programs = [
        block.text for block in find_blocks((ROOT / "docs/testing/nasty.md").read_text()) if block.kind == "python"
    ]
    assert len(programs) == 2
    for program in programs:
        exec(compile(program, "nasty.md", "exec"), {"__name__": "page"})


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("read", [read_by_confluent_kafka, read_by_kafka_python, read_by_aiokafka])
def test_a_client_reads_all_topics_as_described(
    kafka: kafkacompat.testing.RunningBroker,
    topics: Sequence[NastyTopic],
    read: Callable[[str, Sequence[tuple[str, int]], str, int], list[Place]],
    level: str,
) -> None:
    committed = level == "read_committed"
    places = [(topic.name, index) for topic in topics for index in topic.end_offsets]
    count = sum(len(topic.expected(committed=committed)) for topic in topics)
    received = read(kafka.bootstrap_servers, places, level, count)
    problems = {
        topic.name: compare(
            [record for name, record in received if name == topic.name],
            topic.expected(committed=committed),
            has_timestamps=True,
        )
        for topic in topics
    }
    assert {name: problem for name, problem in problems.items() if problem} == {}
