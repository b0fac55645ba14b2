"""Writes records with Spark's own Kafka sink (Spark guide, Writing Data to Kafka)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_integration.topics.names import TargetNames

# Idempotent producers keep the order of a partition. The size limit is that of the producer's buffer: its default of 1
# MiB would reject records that the topic accepts. Tasks write many records at once, so batches are large: with batches
# of 16 KiB and no linger, the default before 4.0, a broker has more than twice the work, and a third more with 128 KiB.
PRODUCER = {
    "kafka.enable.idempotence": "true",
    "kafka.max.request.size": str(32 * 1024 * 1024),
    "kafka.batch.size": str(512 * 1024),
    "kafka.linger.ms": "5",
}
PARTITION = ("topic", "partition")
COLUMNS = ("key", "value", "headers", "topic", "partition")


def json_options(fraction_digits: int) -> dict[str, str]:
    """Return Spark's options for records of JSON, with times to *fraction_digits* digits of a second.

    The text does not depend on the session's time zone, and has a field for each column even if it is null.
    """
    time = "yyyy-MM-dd'T'HH:mm:ss." + "S" * fraction_digits
    return {
        "timeZone": "UTC",
        "ignoreNullFields": "false",
        "timestampFormat": time + "XXX",
        "timestampNTZFormat": time,
    }


def write_batch(frame: DataFrame, target: Mapping[str, str]) -> None:
    """Write the columns of *frame* that are among `COLUMNS`, each task's rows in order; returns when all are written.

    Without `partition` the producer chooses one by the key's hash.
    """
    wanted = [name for name in COLUMNS if name in frame.columns]
    frame.select(*wanted).write.format("kafka").options(**{**PRODUCER, **target}).save()


def renamed_topic(names: TargetNames) -> Column:
    """Return the target's name of the column `topic`."""
    topic = sql.col("topic")
    name = sql.concat(sql.lit(names.prefix), topic)
    for source, target in names.mapped.items():
        name = sql.when(topic == source, sql.lit(target)).otherwise(name)
    return name


def sort_partitions(frame: DataFrame, tasks: int) -> DataFrame:
    """Bring the records of each partition into one task, sorted by offset; there are at most *tasks* tasks."""
    return frame.repartition(tasks, *PARTITION).sortWithinPartitions(*PARTITION, "offset")
