"""Records by the intervals of offsets that they lie in; there may be thousands, so they are joined and not compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from spark_integration.manifest import Interval, Span
from spark_integration.offsets import TopicPartition

Intervals = Mapping[TopicPartition, Sequence[Interval]]

ROWS = "in_topic string, in_partition int, from_offset bigint, until_offset bigint"
IS_IN = "topic = in_topic AND partition = in_partition AND offset >= from_offset AND offset < until_offset"


def outside(frame: DataFrame, intervals: Intervals) -> DataFrame:
    """Return the records that are in none of the intervals."""
    return _joined(frame, intervals, "left_anti") if any(intervals.values()) else frame


def within(frame: DataFrame, intervals: Intervals) -> DataFrame:
    """Return the records that are in one of the intervals."""
    return _joined(frame, intervals, "left_semi")


def spans(frame: DataFrame, intervals: Intervals, *by: str) -> list[tuple[Any, ...]]:
    """Count what each interval has of the records, by further columns: their values, then a Span."""
    numbers = (sql.min("offset"), sql.max("offset"), sql.count("offset"))
    groups = _joined(frame, intervals, "inner").groupBy(*by, "topic", "partition", "from_offset")
    rows = groups.agg(*numbers).drop("from_offset").collect()
    return [(*row[: len(by)], Span(*row[len(by) :])) for row in rows]


def _joined(frame: DataFrame, intervals: Intervals, how: str) -> DataFrame:
    rows = [(*one, first, until) for one, several in intervals.items() for first, until in several]
    return frame.join(sql.broadcast(frame.sparkSession.createDataFrame(rows, ROWS)), sql.expr(IS_IN), how)


def near(intervals: Intervals) -> str:
    """Return a condition in SQL that holds for all records in the intervals and few others; formats skip files by it."""
    topics: dict[str, list[tuple[int, Interval]]] = {}
    for (topic, partition), several in intervals.items():
        topics.setdefault(topic, []).extend((partition, one) for one in several)
    # As text, since Spark makes a balanced tree of it. Names of topics need no quoting.
    return " OR ".join(_near(topic, places) for topic, places in topics.items() if places) or "false"


def _near(topic: str, places: Sequence[tuple[int, Interval]]) -> str:
    partitions = ", ".join(str(one) for one in sorted({partition for partition, _ in places}))
    first, until = min(one[0] for _, one in places), max(one[1] for _, one in places)
    return f"(topic = '{topic}' AND partition IN ({partitions}) AND offset >= {first} AND offset < {until})"
