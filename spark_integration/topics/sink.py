"""Writing records with Spark's own Kafka sink (Spark guide, Writing Data to Kafka)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_integration.topics.names import TargetNames

# Idempotent producers keep the order of a partition; a record that its topic takes shall not fail at the producer's
# own limit, which is 1 MiB (this one is what its buffer holds). Tasks write much at once: a broker has more than twice the
# work with batches of 16 KiB that wait for nothing, as clients before 4.0 have them, and a third more with 128 KiB.
PRODUCER = {
    "kafka.enable.idempotence": "true",
    "kafka.max.request.size": str(32 * 1024 * 1024),
    "kafka.batch.size": str(512 * 1024),
    "kafka.linger.ms": "5",
}
PARTITION = ("topic", "partition")
COLUMNS = ("key", "value", "headers", "topic", "partition")


def json_options(fraction_digits: int) -> dict[str, str]:
    """Return Spark's options for records of JSON, with times to so many digits of a second.

    They give the same text whatever the session's time zone is, and a field for each column even where it is null.
    """
    time = "yyyy-MM-dd'T'HH:mm:ss." + "S" * fraction_digits
    return {
        "timeZone": "UTC",
        "ignoreNullFields": "false",
        "timestampFormat": time + "XXX",
        "timestampNTZFormat": time,
    }


def write_batch(frame: DataFrame, target: Mapping[str, str]) -> None:
    """Write what *frame* has of `COLUMNS`, in the order of its rows within each of its tasks; returns when all is there.

    Without `partition` the producer chooses by the key's hash.
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
    """Bring every partition's records into one task, by offset; *tasks* is how many tasks there are at most."""
    return frame.repartition(tasks, *PARTITION).sortWithinPartitions(*PARTITION, "offset")
