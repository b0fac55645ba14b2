"""Which records a topic has already, as its records' headers of origin tell."""

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
# With its time, since the records of a recreated topic have the same places.
RECORD = (*PLACE, "timestamp")


def find_written_records(
    spark: SparkSession, target: Mapping[str, str], begin: Offsets, end: Offsets, cluster: str | None = None
) -> DataFrame:
    """Return the origins (`RECORD`) of the target's records from *begin* to *end*, and `at`, the offset of each.

    *cluster*: only records that a mirror of that cluster wrote; None: only records that no mirror wrote.
    """
    records = add_origin_columns(
        read_between(spark, target, begin, end).select("headers", sql.col("offset").alias("at"))
    )
    ours = sql.col("origin_cluster").eqNullSafe(sql.lit(cluster)) & sql.col("origin_offset").isNotNull()
    return records.where(ours).select(*(sql.col(f"origin_{name}").alias(name) for name in RECORD), "at")


def read_between(spark: SparkSession, cluster: Mapping[str, str], begin: Offsets, end: Offsets) -> DataFrame:
    """Return the records from *begin* to *end*, which name the same partitions; records that are gone are left out."""
    source = {
        **cluster,
        "assign": _format_assignment(begin),
        "startingOffsets": format_offsets(begin),
        "endingOffsets": format_offsets(end),
        "failOnDataLoss": "false",
    }
    return read_batch(spark, source)


def find_first_missing(frame: DataFrame, written: DataFrame) -> Offsets:
    """Return the offset of the first row of each partition of *frame* that *written* lacks (both have `RECORD`)."""
    missing = frame.select(*RECORD).join(written, list(RECORD), "left_anti")
    rows = missing.groupBy(*PARTITION).agg(sql.min("offset").alias("first")).collect()
    return {TopicPartition(row.topic, row.partition): row["first"] for row in rows}


def select_unwritten(frame: DataFrame, first: Offsets) -> DataFrame:
    """Return the rows of *frame* from the first missing one of their partition on.

    Later rows are written again even if the target has them. A producer that gives up on a record may have written the
    next ones, and a reader that keeps the last value of a key must find those after it.
    """
    return records_within(frame, {partition: [(offset, MAX_OFFSET)] for partition, offset in first.items()})


def _format_assignment(offsets: Mapping[TopicPartition, int]) -> str:
    topics: dict[str, list[int]] = {}
    for topic, partition in offsets:
        topics.setdefault(topic, []).append(partition)
    return json.dumps(topics)
