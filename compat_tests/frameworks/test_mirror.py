"""MirrorMaker 2: a topic with its groups' offsets is copied from one broker to another, and again after a restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from compat_tests.brokers import BROKERS, Broker
from compat_tests.confluent import consumer_of, create_topic, read
from compat_tests.frameworks.programme import Programme, start_java, write_properties
from compat_tests.frameworks.reading import Read, Reader
from compat_tests.waiting import until

pytestmark = pytest.mark.frameworks

PARTITIONS = 3
EARLY, RECORDS = 300, 3000
END = RECORDS // PARTITIONS
CAUGHT_UP, BEHIND = "caught-up", "behind"
BEHIND_AT = 400
BEGIN_MS = 1_700_000_000_000


@pytest.fixture(params=["same", "kafka"])
def source(request: pytest.FixtureRequest, broker_kind: str, tmp_path: Path) -> Iterator[Broker]:
    """Where the records are: a broker of the kind under test, or Apache Kafka."""
    kind = broker_kind if request.param == "same" else request.param
    with BROKERS[kind](tmp_path / "source") as running:
        yield running


@pytest.fixture
def target(broker_kind: str, tmp_path: Path) -> Iterator[Broker]:
    """The broker under test, where the records go."""
    with BROKERS[broker_kind](tmp_path / "target") as running:
        yield running


def start_mirror(source: Broker, target: Broker, folder: Path) -> Programme:
    """Start MirrorMaker from one to the other."""
    properties = {
        "clusters": "from, to",
        "from.bootstrap.servers": source.bootstrap,
        "to.bootstrap.servers": target.bootstrap,
        "from->to.enabled": "true",
        "to->from.enabled": "false",
        "to->from.emit.heartbeats.enabled": "false",
        "topics": "events.*",
        "groups": ".*",
        "sync.group.offsets.enabled": "true",
        "sync.topic.configs.enabled": "true",
        # A second instead of a minute or ten; an offset is noted for every record.
        **{f"{task}.interval.seconds": "1" for task in ("refresh.topics", "refresh.groups", "sync.topic.configs")},
        **{f"{task}.interval.seconds": "1" for task in ("emit.checkpoints", "sync.group.offsets", "emit.heartbeats")},
        "offset.lag.max": "0",
        "replication.factor": "1",
        **{f"{kind}.topic.replication.factor": "1" for kind in ("checkpoints", "heartbeats", "offset-syncs")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "status", "config")},
        "offset.flush.interval.ms": "500",
    }
    file = write_properties(folder / "mirror.properties", properties)
    return start_java("org.apache.kafka.connect.mirror.MirrorMaker", [str(file)], folder / "mirror.log", heap="512m")


def fill_topics(broker: Broker, first: int, count: int) -> None:
    """Produce numbered records with keys, headers and times of their own, and now and then a null."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "compression.type": "lz4"})
    for number in range(first, first + count):
        producer.produce(
            "events",
            key=f"key{number % 50}" if number % 7 else None,
            value=f"value {number}" if number % 11 else None,
            partition=number % PARTITIONS,
            timestamp=BEGIN_MS + number,
            headers=[("number", str(number).encode()), ("none", None)],
        )
    assert producer.flush(60) == 0


def commit_offset(broker: Broker, group: str, offset: int) -> None:
    """Commit this offset of every partition for a group without members."""
    with closing(consumer_of(broker, group)) as consumer:
        offsets = [TopicPartition("events", number, offset) for number in range(PARTITIONS)]
        until(lambda: is_committed(consumer, offsets))


def is_committed(consumer: Consumer, offsets: list[TopicPartition]) -> bool:
    """Commit, or return False while the coordinator is being made."""
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as problem:
        assert problem.args[0].retriable() or problem.args[0].code() == KafkaError.NOT_COORDINATOR, problem
        return False
    return True


def read_committed(broker: Broker, group: str, topic: str) -> list[int]:
    """The group's offsets of the topic's partitions; -1001 where there is none."""
    with closing(consumer_of(broker, group)) as consumer:
        wanted = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return [partition.offset for partition in consumer.committed(wanted, timeout=30)]


def in_order(records: list[Read]) -> Mapping[int, list[Read]]:
    """The records of every partition in the order of their offsets."""
    return {number: [record for record in records if record.partition == number] for number in range(PARTITIONS)}


def test_records_and_groups_are_mirrored(source: Broker, target: Broker, tmp_path: Path) -> None:
    create_topic(source, "events", PARTITIONS, retention_ms="-1")
    create_topic(source, "other")
    fill_topics(source, 0, EARLY)
    commit_offset(source, CAUGHT_UP, EARLY // PARTITIONS)
    with ExitStack() as stack:
        original = stack.enter_context(closing(Reader(source, "events", PARTITIONS)))
        with start_mirror(source, target, tmp_path) as first:
            first.until(lambda: "from.events" in list_topics(target))
            copy = stack.enter_context(closing(Reader(target, "from.events", PARTITIONS)))
            first.until(lambda: read_committed(target, CAUGHT_UP, "from.events") == [EARLY // PARTITIONS] * PARTITIONS)
            # MirrorMaker translates no offset before its own start, so a group's lag can begin only here.
            fill_topics(source, EARLY, RECORDS - EARLY)
            commit_offset(source, CAUGHT_UP, END)
            commit_offset(source, BEHIND, BEHIND_AT)
            first.until(lambda: len(copy.read()) >= RECORDS)
            until(lambda: len(original.read()) == RECORDS)
            assert in_order(copy.records) == in_order(original.records)
            first.until(lambda: read_committed(target, CAUGHT_UP, "from.events") == [END] * PARTITIONS)
            behind = first.until(lambda: read_synced(target, BEHIND))
            assert all(0 <= offset <= BEHIND_AT for offset in behind)
            assert first.stop() in (0, 143), first.log
        assert list_topics(target).isdisjoint({"from.other", "events"})
        assert {"from.checkpoints.internal", "heartbeats"} <= list_topics(target)

        fill_topics(source, RECORDS, RECORDS)
        until(lambda: len(original.read()) == 2 * RECORDS)
        with start_mirror(source, target, tmp_path) as second:
            second.until(lambda: len(copy.read()) >= 2 * RECORDS)
            # It was stopped as it should be, so nothing came twice.
            assert in_order(copy.records) == in_order(original.records)
            # A consumer that moves to the other broker continues at its offset.
            with closing(consumer_of(target, CAUGHT_UP)) as consumer:
                consumer.subscribe(["from.events"])
                rest = read_numbers(consumer, RECORDS)
            assert rest == set(range(RECORDS, 2 * RECORDS))


def list_topics(broker: Broker) -> set[str]:
    """The names of all topics."""
    with closing(consumer_of(broker, "nobody")) as consumer:
        return set(consumer.list_topics(timeout=30).topics)


def read_synced(broker: Broker, group: str) -> list[int]:
    """The group's offsets, once every partition has one."""
    offsets = read_committed(broker, group, "from.events")
    return offsets if min(offsets) >= 0 else []


def read_numbers(consumer: Consumer, count: int) -> set[int]:
    """The numbers in the headers of the next *count* messages, each of which must come once."""
    messages = read(consumer, count)
    numbers = [int(dict(message.headers())["number"]) for message in messages]
    assert len(set(numbers)) == len(numbers)
    return set(numbers)
