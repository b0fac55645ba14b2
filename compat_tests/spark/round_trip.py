"""``python -m compat_tests.spark.round_trip BOOTSTRAP TOPIC``: with the Spark of this Python, write, read back and stream.

Prints one JSON object: Spark's release, and what a batch and a stream saw as [partition, offset, key, value, headers].
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from typing import Any

from pyspark.sql import functions as sql

from spark_integration.session import start_session

RECORDS = 1000
PARTITIONS = 3
DOUBLED = "doubled by Python code of the executors"


def rows_of(frame: Any) -> list[list[Any]]:
    """Return what is compared of each row: its place, its key, its value and its headers."""
    headers = sql.expr("transform(headers, h -> array(h.key, cast(h.value as string)))")
    plain = ("partition", "offset", sql.expr("cast(key as string)"), sql.expr("cast(value as string)"), headers)
    return sorted(list(row) for row in frame.select(*plain).collect())


def written() -> Any:
    """Return the SQL columns that `RECORDS` numbers are written as."""
    header = sql.array(sql.struct(sql.lit("parity").alias("key"), (sql.col("id") % 2).cast("string").cast("binary")))
    value = sql.col("id").cast("string").alias("value")
    partition = (sql.col("id") % PARTITIONS).cast("int").alias("partition")
    typed = header.cast("array<struct<key:string,value:binary>>").alias("headers")
    return [(sql.col("id") % 7).cast("string").alias("key"), value, typed, partition]


def double(batches: Iterable[Any]) -> Iterable[Any]:
    """Double the column ``number`` by Arrow, in a Python of an executor."""
    import pyarrow.compute

    for batch in batches:
        doubled = pyarrow.compute.multiply(batch.column("number"), 2)
        yield batch.from_arrays([doubled], ["number"])


def main(bootstrap: str, topic: str) -> None:
    """Write, read and stream, and print what was seen."""
    spark: Any = start_session("round-trip", master="local[2]")
    target = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    source = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    }
    spark.range(RECORDS).select(*written()).write.format("kafka").options(**target).save()
    batch = spark.read.format("kafka").options(**source).load()
    doubled = batch.select(sql.col("value").cast("string").cast("long").alias("number")).mapInArrow(
        double, "number long"
    )
    with tempfile.TemporaryDirectory() as folder:
        stream = spark.readStream.format("kafka").options(**source, maxOffsetsPerTrigger="400").load()
        query = stream.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
        query.trigger(availableNow=True).start(f"{folder}/out").awaitTermination()
        seen = {
            "spark": spark.version,
            "batch": rows_of(batch),
            "stream": rows_of(spark.read.parquet(f"{folder}/out")),
            "doubled": sum(row.number for row in doubled.collect()),
        }
    spark.stop()
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
