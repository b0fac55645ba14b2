"""Frames of records joined with intervals of offsets; there may be thousands, too many to compare one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from spark_integration.topics.offsets import Interval, RecordSpan, TopicPartition

Intervals = Mapping[TopicPartition, Sequence[Interval]]

ROWS = "in_topic string, in_partition int, from_offset bigint, until_offset bigint"
IS_IN = "topic = in_topic AND partition = in_partition AND offset >= from_offset AND offset < until_offset"


def records_outside(frame: DataFrame, intervals: Intervals) -> DataFrame:
    """Return the records that lie in none of the intervals."""
    return _join_intervals(frame, intervals, "left_anti") if any(intervals.values()) else frame


def records_within(frame: DataFrame, intervals: Intervals) -> DataFrame:
    """Return the records that lie in one of the intervals."""
    return _join_intervals(frame, intervals, "left_semi")


def spans_of(frame: DataFrame, intervals: Intervals, *by: str) -> list[tuple[Any, ...]]:
    """Return a row for each interval that has records: the values of the columns *by*, then a Span."""
    numbers = (sql.min("offset"), sql.max("offset"), sql.count("offset"))
    groups = _join_intervals(frame, intervals, "inner").groupBy(*by, "topic", "partition", "from_offset")
    rows = groups.agg(*numbers).drop("from_offset").collect()
    return [(*row[: len(by)], RecordSpan(*row[len(by) :])) for row in rows]


def _join_intervals(frame: DataFrame, intervals: Intervals, how: str) -> DataFrame:
    rows = [
        (*partition, first, until)
        for partition, partition_intervals in intervals.items()
        for first, until in partition_intervals
    ]
    return frame.join(sql.broadcast(frame.sparkSession.createDataFrame(rows, ROWS)), sql.expr(IS_IN), how)


def covering_condition(intervals: Intervals) -> str:
    """Return a condition in SQL that holds for all records in the intervals and few others.

    Table formats skip files by such a condition.
    """
    topics: dict[str, list[tuple[int, Interval]]] = {}
    for (topic, partition), partition_intervals in intervals.items():
        topics.setdefault(topic, []).extend((partition, interval) for interval in partition_intervals)
    # Spark makes a balanced tree of text, but not of columns joined by |. Names of topics need no quoting.
    return " OR ".join(_topic_condition(topic, parts) for topic, parts in topics.items() if parts) or "false"


def _topic_condition(topic: str, parts: Sequence[tuple[int, Interval]]) -> str:
    partitions = ", ".join(str(number) for number in sorted({partition for partition, _ in parts}))
    first, until = min(interval[0] for _, interval in parts), max(interval[1] for _, interval in parts)
    return f"(topic = '{topic}' AND partition IN ({partitions}) AND offset >= {first} AND offset < {until})"
