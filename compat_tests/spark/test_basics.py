"""The tests of `make test` with Spark: batches both ways, and streaming that continues from its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions
from pyspark.sql import functions as sql

from compat_tests.batches import RECENT_MS
from compat_tests.brokers import Broker
from compat_tests.confluent import admin_of, create_topic
from compat_tests.conftest import MakeBroker
from compat_tests.spark.scene import progress_of


def produce(broker: Broker, topic: str, numbers: range, **options: Any) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "zstd"})
    for number in numbers:
        headers = [("number", b"%d" % number)]
        producer.produce(topic, key=b"%d" % (number % 10), value=b"%d" % number, headers=headers, **options)
    assert producer.flush(60) == 0


def load_source(reader: Any, broker: Broker, topic: str, **options: str) -> Any:
    return (
        reader.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .options(**options)
        .load()
    )


def numbers_of(rows: Any) -> list[int]:
    return sorted(int(row.value) for row in rows.select("value").collect())


def test_batch_read_sees_keys_values_headers_and_offsets(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 3)
    produce(broker, name, range(3000), timestamp=RECENT_MS + 123)
    rows = load_source(spark.read, broker, name, includeHeaders="true").collect()
    assert sorted(int(row.value) for row in rows) == list(range(3000))
    assert {row.headers[0].value == row.value and int(row.key) == int(row.value) % 10 for row in rows} == {True}
    assert {row.timestamp.microsecond for row in rows} == {123_000}
    for partition in range(3):
        offsets = sorted(row.offset for row in rows if row.partition == partition)
        assert offsets == list(range(len(offsets)))


def test_batch_read_of_a_range_and_by_time(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 1)
    produce(broker, name, range(100), timestamp=RECENT_MS)
    produce(broker, name, range(100, 200), timestamp=RECENT_MS + 100_000)
    ends = json.dumps({name: {"0": 150}})
    starts = json.dumps({name: {"0": 50}})
    ranged = load_source(spark.read, broker, name, startingOffsets=starts, endingOffsets=ends)
    assert numbers_of(ranged) == list(range(50, 150))
    by_time = load_source(spark.read, broker, name, startingTimestamp=str(RECENT_MS + 50_000))
    assert numbers_of(by_time) == list(range(100, 200))


def test_batch_write_reaches_every_partition(broker: Broker, spark: Any, name: str) -> None:
    create_topic(broker, name, 4)
    frame = spark.range(20_000).select(
        sql.col("id").cast("string").alias("key"),
        sql.concat(sql.lit("value "), sql.col("id")).alias("value"),
        sql.array(
            sql.struct(sql.lit("from").alias("key"), sql.lit(b"spark").alias("value")),
        ).alias("headers"),
    )
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": name, "includeHeaders": "true"}
    frame.write.format("kafka").options(**options).save()
    back = load_source(spark.read, broker, name, includeHeaders="true")
    summary = back.agg(sql.count("*"), sql.countDistinct("key"), sql.countDistinct("partition")).first()
    assert tuple(summary) == (20_000, 20_000, 4)
    assert back.filter("cast(value as string) <> concat('value ', cast(key as string))").count() == 0
    assert back.filter("headers[0].key = 'from' and headers[0].value = cast('spark' as binary)").count() == 20_000


def run_to_the_end(spark: Any, broker: Broker, topic: str, folder: Path) -> list[dict[str, Any]]:
    """Process the existing records into Parquet, and return the progress of each micro-batch."""
    stream = load_source(spark.readStream, broker, topic, maxOffsetsPerTrigger="400", minPartitions="2")
    query = (
        stream.selectExpr("partition", "offset", "cast(value as string) as value")
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert query.exception() is None
    return progress_of(query)


def test_stream_goes_on_from_its_checkpoint(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    """The same query twice reads nothing twice, misses nothing, and sees a partition that was added between."""
    create_topic(broker, name, 2)
    produce(broker, name, range(1000))
    first = run_to_the_end(spark, broker, name, tmp_path)
    assert sum(batch["numInputRows"] for batch in first) == 1000
    admin_of(broker).create_partitions([NewPartitions(name, 3)])[name].result(30)
    produce(broker, name, range(1000, 1500))
    produce(broker, name, range(1500, 1600), partition=2)
    second = run_to_the_end(spark, broker, name, tmp_path)
    assert sum(batch["numInputRows"] for batch in second) == 600
    assert min(batch["batchId"] for batch in second) > max(batch["batchId"] for batch in first if batch["numInputRows"])
    stored = spark.read.parquet(str(tmp_path / "out"))
    assert numbers_of(stored) == list(range(1600))
    assert stored.select("partition", "offset").distinct().count() == 1600


def test_stream_goes_on_after_the_broker_restarts(
    make_broker: MakeBroker, spark: Any, name: str, tmp_path: Path
) -> None:
    broker = make_broker()
    create_topic(broker, name, 2)
    produce(broker, name, range(500))
    run_to_the_end(spark, broker, name, tmp_path)
    broker.stop()
    broker.start()
    produce(broker, name, range(500, 900))
    run_to_the_end(spark, broker, name, tmp_path)
    assert numbers_of(spark.read.parquet(str(tmp_path / "out"))) == list(range(900))


def test_stream_from_topic_to_topic(broker: Broker, spark: Any, name: str, tmp_path: Path) -> None:
    target = name + "-doubled"
    create_topic(broker, name, 2)
    create_topic(broker, target, 2)
    produce(broker, name, range(700))
    query = (
        load_source(spark.readStream, broker, name)
        .selectExpr("key", "cast(2 * cast(cast(value as string) as int) as string) as value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert numbers_of(load_source(spark.read, broker, target)) == [2 * number for number in range(700)]
