"""Records of topics as a raw consumer receives them, and as an archive holds them, for comparison."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, Producer, TopicPartition

from compat_tests.batches import RECENT_MS
from compat_tests.brokers import Broker
from compat_tests.confluent import consumer_of
from compat_tests.spark.scene import Scene, check_distinct
from spark_integration.archive.pipeline import ArchiveSummary, archive
from spark_integration.archive.reading import read_archive
from spark_integration.archive.settings import FileOptions
from spark_integration.queries.settings import StreamOptions
from spark_integration.state.archives import read_manifest

DAY_MS = 86_400_000
COLUMNS = (
    "topic",
    "partition",
    "offset",
    "key",
    "value",
    "transform(headers, one -> struct(one.key, one.value)) as headers",
    "unix_millis(timestamp) as timestamp",
    "timestampType",
)


class Archived(NamedTuple):
    """Everything that a record holds."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    timestamp_type: int


def produce_all_kinds(broker: Broker, topic: str, count: int, partitions: int, first: int = 0) -> None:
    """Produce records of four days to each partition, with and without key, value and headers."""
    refused: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            refused.append(error)

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "compression.type": "lz4"})
    for number in range(first, first + count):
        for partition in range(partitions):
            text = f"{partition}/{number}".encode()
            key = text if number % 3 else None
            value = text * (number % 50) if number % 11 else None
            headers: list[Any] = [("number", text), ("number", None), ("empty", b"")][: number % 4]
            at = RECENT_MS - number % 4 * DAY_MS + number
            producer.produce(
                topic,
                key=key,
                value=value,
                headers=headers,
                partition=partition,
                timestamp=at,
                on_delivery=delivered,
            )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not refused


def read_topics(broker: Broker, topics: Iterable[str]) -> set[Archived]:
    """Return every record that a consumer of committed records receives, from the topics' beginning to their end."""
    consumer = consumer_of(broker, "archives", **{"enable.partition.eof": True, "isolation.level": "read_committed"})
    try:
        known = consumer.list_topics(timeout=30).topics
        places = [TopicPartition(topic, number, 0) for topic in topics for number in known[topic].partitions]
        consumer.assign([TopicPartition(place.topic, place.partition, -2) for place in places])
        return check_distinct(_to_the_end(consumer, len(places)))
    finally:
        consumer.close()


def _to_the_end(consumer: Consumer, ends: int) -> list[Archived]:
    records = []
    while ends:
        message = consumer.poll(30)
        assert message is not None, f"{ends} partitions do not end"
        if message.error():
            assert message.error().name() == "_PARTITION_EOF", message.error()
            ends -= 1
        else:
            records.append(_as_archived(message))
    return records


def _as_archived(message: Any) -> Archived:
    kind, timestamp_ms = message.timestamp()
    return Archived(
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        timestamp_ms,
        int(kind == TIMESTAMP_LOG_APPEND_TIME),
    )


def read_frame(frame: Any) -> set[Archived]:
    """Return every record of an archive; AssertionError if it holds one twice."""
    return check_distinct([_from_row(*row) for row in frame.selectExpr(*COLUMNS).collect()])


def _from_row(*row: Any) -> Archived:
    topic, partition, offset, key, value, headers, timestamp_ms, timestamp_type = row
    places = (_as_bytes(key), _as_bytes(value), tuple((header[0], _as_bytes(header[1])) for header in headers or ()))
    return Archived(topic, partition, offset, *places, timestamp_ms, timestamp_type)


def _as_bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def run_archive(scene: Scene, checkpoint: str = "checkpoint", path: str = "archive", **options: Any) -> ArchiveSummary:
    """Archive the scene's topic, or the topics of *options* of Spark's source, to the end."""
    files, partition_by = options.pop("files", FileOptions()), options.pop("partition_by", None)
    source = {"kafka.bootstrap.servers": scene.broker.bootstrap, "startingOffsets": "earliest", **options}
    source.setdefault("kafka.isolation.level", "read_committed")
    if not source.keys() & {"subscribePattern", "assign"}:
        source.setdefault("subscribe", scene.topic)
    stream = StreamOptions(str(scene.folder / checkpoint), source.pop("trigger", "availableNow"))
    form = source.pop("format", None)
    return archive(
        scene.session, source, str(scene.folder / path), stream, format=form, partition_by=partition_by, files=files
    )


def read_held(scene: Scene) -> Any:
    return read_archive(scene.session, str(scene.folder / "archive"))


def assert_the_same(scene: Scene, *topics: str) -> None:
    stored = read_topics(scene.broker, topics or [scene.topic])
    assert read_frame(read_held(scene)) == stored
    assert read_manifest(scene.session, str(scene.folder / "archive")).records == len(stored)


def list_spans(scene: Scene) -> list[tuple[int, int, int]]:
    manifest = read_manifest(scene.session, str(scene.folder / "archive"))
    return sorted((span.partition, span.from_offset, span.until_offset) for span in manifest.ranges)
