"""The columns of an archive, their order within a file, and how its folders are split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_integration.errors import PipelineError

# Times are precise to the millisecond; `date` is that of `timestamp` in UTC.
SCHEMA = """
    key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int,
    headers array<struct<key: string, value: binary>>, date date
"""
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers", "date")
PARTITION_BY = ("topic", "date")
MAY_PARTITION_BY = ("topic", "partition", "date")
DAY_MS = 86_400_000
MIB = 1 << 20


@dataclass(frozen=True)
class FileOptions:
    """How large files are. *tasks* write a batch (0: as many as Spark runs at a time), each one file in each folder.

    *max_records_per_file*: 0 for any number. Where a folder has *merge_files* small ones (less than half of
    *target_file_size_bytes*) they are merged; 0: never.
    """

    tasks: int = 0
    max_records_per_file: int = 0
    merge_files: int = 0
    target_file_size_bytes: int = 128 * MIB


DEFAULTS = FileOptions()


def records_of(source: DataFrame) -> DataFrame:
    """Return what Spark's Kafka source gives as the columns of an archive."""
    return source.withColumn("date", date_of(sql.col("timestamp"))).select(*COLUMNS)


def date_of(timestamp: Column) -> Column:
    """Return the date in UTC, whatever the session's time zone."""
    return sql.date_from_unix_date(sql.floor(sql.unix_millis(timestamp) / DAY_MS).cast("int"))


def in_order(frame: DataFrame, partition_by: Sequence[str]) -> DataFrame:
    """Sort within each task so that it has one file open at a time, and its records by partition and offset."""
    rest = (name for name in ("topic", "partition", "offset") if name not in partition_by)
    return frame.sortWithinPartitions(*partition_by, *rest)


def check_partition_by(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that folders are named by; raises PipelineError."""
    if wrong := [name for name in names if name not in MAY_PARTITION_BY]:
        raise PipelineError(f"an archive cannot be split by {wrong[0]!r}: choose of {', '.join(MAY_PARTITION_BY)}")
    return tuple(dict.fromkeys(names))
