"""``python -m compat_tests.spark.round_trip BOOTSTRAP TOPIC``: write, read and archive with the Spark of this Python.

Prints one JSON object: Spark's release, and the records of a batch and of an archive in each format that this release
has jars for, as [partition, offset, key, value, headers].
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import functions as sql

from compat_tests.spark.releases import table_formats
from spark_integration.archive.pipeline import archive
from spark_integration.archive.reading import read_archive
from spark_integration.queries.settings import StreamOptions
from spark_integration.session import start_session

RECORDS = 1000
PARTITIONS = 3
DOUBLED = "doubled by Python code of the executors"


def rows_of(frame: Any) -> list[list[Any]]:
    """Return the parts of each row that are compared: its place, its key, its value and its headers."""
    headers = sql.expr("transform(headers, h -> array(h.key, cast(h.value as string)))")
    plain = ("partition", "offset", sql.expr("cast(key as string)"), sql.expr("cast(value as string)"), headers)
    return sorted(list(row) for row in frame.select(*plain).collect())


def written_columns() -> list[Any]:
    """Return the SQL columns of the numbered `RECORDS`."""
    header = sql.array(sql.struct(sql.lit("parity").alias("key"), (sql.col("id") % 2).cast("string").cast("binary")))
    value = sql.col("id").cast("string").alias("value")
    partition = (sql.col("id") % PARTITIONS).cast("int").alias("partition")
    typed = header.cast("array<struct<key:string,value:binary>>").alias("headers")
    return [(sql.col("id") % 7).cast("string").alias("key"), value, typed, partition]


def double(batches: Iterable[Any]) -> Iterable[Any]:
    """Double the column ``number`` with Arrow, in a Python of an executor."""
    import pyarrow.compute

    for batch in batches:
        doubled = pyarrow.compute.multiply(batch.column("number"), 2)
        yield batch.from_arrays([doubled], ["number"])


def archive_topic(spark: Any, source: dict[str, str], folder: Path, format: str) -> list[list[Any]]:
    """Archive the topic in a format, in several micro-batches, and return the archive's records."""
    path, checkpoint = str(folder / format), str(folder / f"{format}-checkpoint")
    archive(spark, {**source, "maxOffsetsPerTrigger": "400"}, path, StreamOptions(checkpoint), format=format)
    return rows_of(read_archive(spark, path))


def main(bootstrap: str, topic: str) -> None:
    """Write, read and archive in every format that this release has, and print the results."""
    spark: Any = start_session("round-trip", master="local[2]", packages=table_formats())
    target = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    source = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    spark.range(RECORDS).select(*written_columns()).write.format("kafka").options(**target).save()
    batch = spark.read.format("kafka").options(**source, includeHeaders="true").load()
    doubled = batch.select(sql.col("value").cast("string").cast("long").alias("number")).mapInArrow(
        double, "number long"
    )
    with tempfile.TemporaryDirectory() as folder:
        seen = {
            "spark": spark.version,
            "batch": rows_of(batch),
            "archives": {
                format: archive_topic(spark, source, Path(folder), format) for format in ["parquet", *table_formats()]
            },
            "doubled": sum(row.number for row in doubled.collect()),
        }
    spark.stop()
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
