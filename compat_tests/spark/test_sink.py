"""Spark's sink: the topic and partition of each row, compressed and large records, and rejected ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from compat_tests.spark.scene import Scene, catch_failure, collect_records, make_values, produce_values
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.record_batch import read_header, split_batches

pytestmark = pytest.mark.spark

WITH_TOPIC = ("topic", "partition", "offset", "value")


def write_frame(scene: Scene, frame: Any, **options: str) -> None:
    """Write a frame to the topics of its column, or of the option ``topic``."""
    given = {"kafka.bootstrap.servers": scene.broker.bootstrap, **options}
    frame.write.format("kafka").options(**given).save()


def make_numbers(scene: Scene, count: int, *columns: str) -> Any:
    """Return a frame of one task: the numbers from 0 as ``value``, and more columns made of ``id``."""
    return scene.session.range(0, count, 1, 1).selectExpr("string(id) as value", *columns)


def test_the_topic_of_each_row(scene: Scene) -> None:
    """The option overrides the column."""
    topics = [f"{scene.topic}-{number}" for number in range(3)]
    for topic in topics:
        scene.create(1, topic)
    write_frame(scene, make_numbers(scene, 30, f"concat('{scene.topic}-', id % 3) as topic"))
    by_column = collect_records(scene.batch(subscribe=",".join(topics)), WITH_TOPIC)
    assert scene.note("by column", by_column) == {
        (topics[number % 3], 0, number // 3, str(number)) for number in range(30)
    }
    write_frame(scene, make_numbers(scene, 5, f"'{topics[0]}' as topic"), topic=topics[1])
    by_option = collect_records(scene.batch(subscribe=",".join(topics)), WITH_TOPIC) - by_column
    assert scene.note("by option", by_option) == {(topics[1], 0, 10 + number, str(number)) for number in range(5)}


def test_the_partition_of_each_row(scene: Scene) -> None:
    """A row that names a partition goes there, in the order of the rows; for others the key decides."""
    scene.create(4)
    write_frame(scene, make_numbers(scene, 40, "int(3 - id % 4) as partition", "'key' as key"), topic=scene.topic)
    named = scene.note("named", collect_records(scene.batch()))
    assert named == {(3 - number % 4, number // 4, str(number)) for number in range(40)}
    write_frame(
        scene, make_numbers(scene, 40, "string(id % 10) as key", "cast(null as int) as partition"), topic=scene.topic
    )
    by_key = {
        (row[0], row[2]) for row in collect_records(scene.batch(), ("partition", "offset", "key")) if row[2] != "key"
    }
    assert len(scene.note("by key", by_key)) == 10
    assert len({partition for partition, _ in by_key}) == 4


def test_a_partition_that_is_not_there(scene: Scene) -> None:
    scene.create(2)
    frame = make_numbers(scene, 5, "5 as partition")
    refused = catch_failure(lambda: write_frame(scene, frame, topic=scene.topic, **{"kafka.max.block.ms": "1500"}))
    assert "TimeoutException" in scene.note("refusal", refused)
    assert collect_records(scene.batch()) == set()


def test_rows_without_a_topic(scene: Scene) -> None:
    assert catch_failure(lambda: write_frame(scene, make_numbers(scene, 5)))[0].startswith("AnalysisException")
    frame = make_numbers(scene, 5, "cast(null as string) as topic")
    assert scene.note("refusal", catch_failure(lambda: write_frame(scene, frame))) != []


def test_a_topic_that_is_made_by_writing(scene: Scene) -> None:
    write_frame(scene, make_numbers(scene, 100), topic=scene.topic)
    assert scene.note("rows", collect_records(scene.batch())) == {(0, number, str(number)) for number in range(100)}


def codecs_on_disk(scene: Scene) -> set[Codec]:
    (segment,) = (scene.broker.data_folder / f"{scene.topic}-0").glob("*.log")
    return {Codec(read_header(batch).codec) for batch in split_batches(segment.read_bytes())}


@pytest.mark.parametrize("codec", [codec.name.lower() for codec in Codec])
def test_compression(scene: Scene, codec: str) -> None:
    scene.create()
    write_frame(scene, make_numbers(scene, 5000), topic=scene.topic, **{"kafka.compression.type": codec})
    assert collect_records(scene.batch()) == {(0, number, str(number)) for number in range(5000)}
    assert scene.note("codecs", {stored_codec.name for stored_codec in codecs_on_disk(scene)}) == {codec.upper()}


@pytest.mark.parametrize("codec", ["gzip", "lz4"])
def test_the_topics_own_compression(scene: Scene, codec: str) -> None:
    """The broker recompresses batches of another codec."""
    scene.create(compression_type=codec)
    write_frame(scene, make_numbers(scene, 5000), topic=scene.topic, **{"kafka.compression.type": "zstd"})
    assert collect_records(scene.batch()) == {(0, number, str(number)) for number in range(5000)}
    assert scene.note("codecs", {stored_codec.name for stored_codec in codecs_on_disk(scene)}) == {codec.upper()}


PRODUCERS: dict[str, Mapping[str, str]] = {
    "acks-0": {"kafka.acks": "0", "kafka.enable.idempotence": "false"},
    "acks-1": {"kafka.acks": "1", "kafka.enable.idempotence": "false"},
    "acks-all": {"kafka.acks": "all", "kafka.enable.idempotence": "true"},
    "small-batches": {"kafka.batch.size": "100", "kafka.linger.ms": "5"},
    "in-flight-1": {"kafka.max.in.flight.requests.per.connection": "1"},
}


@pytest.mark.parametrize("producer", list(PRODUCERS))
def test_producers_of_several_kinds(scene: Scene, producer: str) -> None:
    scene.create()
    write_frame(scene, make_numbers(scene, 2000), topic=scene.topic, **PRODUCERS[producer])
    assert scene.note("rows", collect_records(scene.batch())) == {(0, number, str(number)) for number in range(2000)}


SIZE_BYTES = 5_000_000


def test_large_records(scene: Scene) -> None:
    """Larger than a fetch may be: each arrives by itself."""
    scene.create(max_message_bytes="20000000")
    large = f"if(id % 2 = 0, repeat(string(id), {SIZE_BYTES}), string(id)) as value"
    frame = scene.session.range(0, 6, 1, 1).selectExpr(large)
    write_frame(scene, frame, topic=scene.topic, **{"kafka.max.request.size": "20000000"})
    digests = scene.batch().selectExpr("partition", "offset", "concat(length(value), ' ', sha2(value, 256)) as value")
    wanted = frame.selectExpr("concat(length(value), ' ', sha2(value, 256)) as value").collect()
    assert scene.note("rows", collect_records(digests)) == {(0, offset, row.value) for offset, row in enumerate(wanted)}
    assert wanted[4].value.startswith(f"{SIZE_BYTES} ")


def test_records_too_large(scene: Scene) -> None:
    """Too large for the producer, and too large for the topic."""
    scene.create(max_message_bytes="100000")
    frame = scene.session.range(1).selectExpr("repeat('x', 2000000) as value")
    limits = {"kafka.max.request.size": "20000000"}
    refused = scene.note("by the producer", catch_failure(lambda: write_frame(scene, frame, topic=scene.topic)))
    assert "RecordTooLargeException" in refused
    refused = scene.note("by the broker", catch_failure(lambda: write_frame(scene, frame, topic=scene.topic, **limits)))
    assert "RecordTooLargeException" in refused
    assert collect_records(scene.batch()) == set()


def test_from_topic_to_topics(scene: Scene) -> None:
    """A stream writes with topic, partition, key and headers, and continues from its checkpoint with nothing twice."""
    targets = [f"{scene.topic}-even", f"{scene.topic}-odd"]
    scene.create(2)
    for topic in targets:
        scene.create(3, topic)
    for start in (0, 50):
        produce_values(scene.broker, scene.topic, make_values(50, 2, start))
        copy_records(scene)
    columns = ("topic", "partition", "key", "value", "headers[0].key", "string(headers[0].value)")
    copied = scene.batch(subscribe=",".join(targets), includeHeaders="true").selectExpr(*columns).collect()
    rows = sorted(
        (row[0].removeprefix(scene.topic), row[1], row[2].decode(), row[3].decode(), row[4], row[5]) for row in copied
    )
    wanted = [
        (
            "-odd" if offset % 2 else "-even",
            offset % 3,
            f"key {offset}",
            f"{partition}/{offset}",
            "from",
            str(partition),
        )
        for partition in range(2)
        for offset in range(100)
    ]
    assert scene.note("rows", rows) == sorted(wanted)


def copy_records(scene: Scene) -> None:
    """Write the existing records, each at the place of its offset."""
    made = scene.stream().selectExpr(
        "value",
        "concat('key ', offset) as key",
        "int(offset % 3) as partition",
        f"concat('{scene.topic}', if(offset % 2 = 0, '-even', '-odd')) as topic",
        "array(struct('from' as key, cast(string(partition) as binary) as value)) as headers",
    )
    writer = made.writeStream.format("kafka").option("kafka.bootstrap.servers", scene.broker.bootstrap)
    query = writer.option("checkpointLocation", str(scene.folder / "copying")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
