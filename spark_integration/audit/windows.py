"""How many records each window of time has, and how long they took."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import groupby

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_integration.audit.findings import Row
from spark_integration.audit.formatting import record_time
from spark_integration.audit.latency import name_percentiles, percentile_column, stage_latencies
from spark_integration.audit.places import AuditedPlace

WINDOWS_LIMIT = 1_500
# Widths of the windows of a report in milliseconds, from a minute to 30 days.
WIDTHS_MS = tuple(seconds * 1000 for seconds in (60, 300, 900, 3_600, 21_600, 86_400, 604_800, 2_592_000))
PRODUCERS_SHOWN = 5
OTHERS = "(others)"


def smallest_width_ms(first_ms: int, last_ms: int) -> int:
    """Return the smallest width that makes at most `WINDOWS_LIMIT` windows, or else the widest one."""
    return next((width for width in WIDTHS_MS if (last_ms - first_ms) // width < WINDOWS_LIMIT), WIDTHS_MS[-1])


def fitting_width_ms(topics: Iterable[Row]) -> int:
    """Return the width of windows that fits all topics (their rows have `first_ms` and `last_ms`)."""
    known = [row[name] for row in topics for name in ("first_ms", "last_ms") if row[name] is not None]
    times = [time_ms for time_ms in known if record_time(time_ms)]
    return smallest_width_ms(min(times, default=0), max(times, default=0))


def count_by_window(place: AuditedPlace, width_ms: int) -> DataFrame:
    """Return a row for each topic, producer and window (`start_ms`, of the record's timestamp): `records`."""
    counted = place.visible.groupBy("topic", "producer", _window_start(width_ms)).agg(sql.count("*").alias("records"))
    return counted.withColumn("place", sql.lit(place.name))


def count_places_by_window(places: Iterable[AuditedPlace], width_ms: int) -> DataFrame:
    """Return the counts of all places."""
    return reduce(DataFrame.unionByName, [count_by_window(place, width_ms) for place in places])


def window_count_rows(place: AuditedPlace, width_ms: int, producers: Iterable[Row]) -> list[Row]:
    """Return counts by time of the largest of *producers* of each topic; all others count as one."""
    largest = _largest_producers([row for row in producers if row["place"] == place.name])
    shown = sql.when(_is_one_of(largest), sql.col("producer")).otherwise(OTHERS).alias("producer")
    counted = (
        count_by_window(place, width_ms)
        .groupBy("place", "topic", shown, "start_ms")
        .agg(sql.sum("records").alias("records"))
    )
    return [row.asDict() for row in counted.orderBy("topic", "start_ms", "producer").collect()]


def window_latency_rows(place: AuditedPlace, width_ms: int, *, by_field: bool) -> list[Row]:
    """Return the percentiles of each topic and stage by time, in milliseconds."""
    by_window = stage_latencies(place, by_field=by_field).groupBy("topic", "stage", _window_start(width_ms))
    latencies = (
        by_window.agg(percentile_column("ms").alias("percentiles")).orderBy("topic", "stage", "start_ms").collect()
    )
    return [
        {
            "place": place.name,
            "topic": row.topic,
            "stage": row.stage,
            "start_ms": row.start_ms,
            **name_percentiles(row.percentiles),
        }
        for row in latencies
    ]


def _largest_producers(producers: list[Row]) -> list[tuple[str, str]]:
    ordered = sorted(producers, key=lambda row: (row["topic"], -row["records"]))
    by_topic = (list(rows)[:PRODUCERS_SHOWN] for _, rows in groupby(ordered, key=lambda row: row["topic"]))
    return [(row["topic"], row["producer"]) for rows in by_topic for row in rows]


def _is_one_of(named: list[tuple[str, str]]) -> Column:
    conditions = [(sql.col("topic") == topic) & (sql.col("producer") == producer) for topic, producer in named]
    return reduce(lambda first, second: first | second, conditions, sql.lit(False))


def _window_start(width_ms: int) -> Column:
    return (sql.floor(sql.col("broker_ms") / width_ms) * width_ms).alias("start_ms")
