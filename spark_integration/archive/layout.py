"""The columns of an archive, and their order within a file."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

# Times are precise to the millisecond; `date` is that of `timestamp` in UTC.
SCHEMA = """
    key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int,
    headers array<struct<key: string, value: binary>>, date date
"""
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers", "date")
DAY_MS = 86_400_000


def archive_columns(source: DataFrame) -> DataFrame:
    """Return the records of Spark's Kafka source with the columns of an archive."""
    return source.withColumn("date", utc_date(sql.col("timestamp"))).select(*COLUMNS)


def utc_date(timestamp: Column) -> Column:
    """Return the date in UTC, whatever the session's time zone is."""
    return sql.date_from_unix_date(sql.floor(sql.unix_millis(timestamp) / DAY_MS).cast("int"))


def sort_for_files(frame: DataFrame, partition_by: Sequence[str]) -> DataFrame:
    """Sort within each task, so that it has one file open at a time, with records by partition and offset."""
    rest = (name for name in ("topic", "partition", "offset") if name not in partition_by)
    return frame.sortWithinPartitions(*partition_by, *rest)
