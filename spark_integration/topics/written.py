"""What topics have already of what is to be written, as their records' origin headers tell."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.topics.intervals import records_within
from spark_integration.topics.offsets import MAX_OFFSET, Offsets, TopicPartition, format_offsets
from spark_integration.topics.origin import add_origin_columns
from spark_integration.topics.sink import PARTITION
from spark_integration.topics.source import read_batch

PLACE = ("topic", "partition", "offset")
# With its time: the records of a topic that was deleted and made anew have the same places.
RECORD = (*PLACE, "timestamp")


def find_written_records(
    spark: SparkSession, target: Mapping[str, str], begin: Offsets, end: Offsets, cluster: str | None = None
) -> DataFrame:
    """Return which records (`RECORD`) those of the target from *begin* to *end* came from, and `at` which offset it has them.

    *cluster*: only what a mirror of that cluster wrote; None: only what no mirror wrote.
    """
    records = add_origin_columns(
        read_between(spark, target, begin, end).select("headers", sql.col("offset").alias("at"))
    )
    ours = sql.col("origin_cluster").eqNullSafe(sql.lit(cluster)) & sql.col("origin_offset").isNotNull()
    return records.where(ours).select(*(sql.col(f"origin_{name}").alias(name) for name in RECORD), "at")


def read_between(spark: SparkSession, cluster: Mapping[str, str], begin: Offsets, end: Offsets) -> DataFrame:
    """Return the records from *begin* to *end*, which name the same partitions; what is gone is left out."""
    source = {
        **cluster,
        "assign": _format_assignment(begin),
        "startingOffsets": format_offsets(begin),
        "endingOffsets": format_offsets(end),
        "failOnDataLoss": "false",
    }
    return read_batch(spark, source)


def find_first_missing(frame: DataFrame, there: DataFrame) -> Offsets:
    """Return the offset of the first row of each partition of *frame* that is not in *there* (both have `RECORD`)."""
    missing = frame.select(*RECORD).join(there, list(RECORD), "left_anti")
    rows = missing.groupBy(*PARTITION).agg(sql.min("offset").alias("first")).collect()
    return {TopicPartition(row.topic, row.partition): row["first"] for row in rows}


def select_unwritten(frame: DataFrame, first: Offsets) -> DataFrame:
    """Return the rows of *frame* from the first missing one of their partition on.

    Not just those that are missing: a producer that gives a record up may have written the next ones, and a reader
    that keeps the last value of a key must find them once more behind it.
    """
    return records_within(frame, {one: [(offset, MAX_OFFSET)] for one, offset in first.items()})


def _format_assignment(offsets: Mapping[TopicPartition, int]) -> str:
    topics: dict[str, list[int]] = {}
    for topic, partition in offsets:
        topics.setdefault(topic, []).append(partition)
    return json.dumps(topics)
