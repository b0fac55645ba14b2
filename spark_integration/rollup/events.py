"""Records as events: their fields, those that cannot be parsed, and those that are late."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_integration.rollup.durations import WindowLengths
from spark_integration.rollup.measures import AGGREGATES, Measure
from spark_integration.rollup.paths import Path
from spark_integration.rollup.schema import CORRUPT, schema_of_paths
from spark_integration.rollup.settings import RollupSettings
from spark_integration.topics.casts import try_cast

TIME = "event_time"
REASON = "dead_reason"
PARSED = "parsed"
# Why a record is a dead letter: its value is no JSON object, or it has no time that can be read.
MALFORMED, NO_TIME = "malformed", "no-time"
MAX_DOUBLE = 1.7976931348623157e308
# Years of four digits: times beyond them have no date in most programs.
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999


def parse_events(records: DataFrame, rollup: RollupSettings) -> DataFrame:
    """Add `event_time`, `parsed` and `dead_reason`, which is null for a record that is an event."""
    parsed = records.withColumn(PARSED, _parse_value(rollup.paths))
    time = parsed.withColumn(TIME, _event_time(rollup.time_path))
    return time.withColumn(REASON, _dead_reason())


def value_at(path: Path) -> Column:
    """Return an event's field as text."""
    return reduce(lambda column, name: column.getField(name), path, sql.col(PARSED))


def roll_up_events(records: DataFrame, rollup: RollupSettings) -> DataFrame:
    """Return the results of a stream of records: windows, dimensions, measures."""
    alive = parse_events(records, rollup).where(sql.col(REASON).isNull()).withWatermark(TIME, rollup.watermark)
    names = zip(rollup.dimension_names, rollup.dimension_paths, strict=True)
    dimensions = [value_at(path).alias(name) for name, path in names]
    grouped = alive.groupBy(sql.window(TIME, rollup.window, rollup.slide).alias("window"), *dimensions)
    results = grouped.agg(*(_measure_column(measure) for measure in rollup.columns))
    ends = {"window_start": sql.col("window.start"), "window_end": sql.col("window.end")}
    return results.withColumns(ends).select(*rollup.value_columns)


def count_events(records: DataFrame, rollup: RollupSettings, late_until_ms: int) -> DataFrame:
    """Return one row: `rows`, `dead_rows`, and the events of whose windows all (`late_rows`) or some were over.

    Spark's own figure (numRowsDroppedByWatermark) counts groups, after the events of a batch were grouped.
    """
    alive = sql.col(REASON).isNull()
    first_end, last_end = _window_ends(rollup.windows)
    return parse_events(records, rollup).agg(
        sql.count("*").alias("rows"),
        sql.count_if(~alive).alias("dead_rows"),
        sql.count_if(alive & (last_end <= late_until_ms)).alias("late_rows"),
        sql.count_if(alive & (first_end <= late_until_ms) & (last_end > late_until_ms)).alias("partly_late_rows"),
    )


def _measure_column(measure: Measure) -> Column:
    """Return the aggregate of the values at the measure's path."""
    if measure.path is None:
        return sql.count("*").alias(measure.name)
    aggregate = AGGREGATES[measure.aggregate]
    value = value_at(measure.path)
    column: Column = getattr(sql, aggregate.function)(_finite_number(value) if aggregate.of_numbers else value)
    return column.alias(measure.name)


def _finite_number(text: Column) -> Column:
    """Read a number; null if there is none or it is not finite, as one infinite number would spoil a sum."""
    number = try_cast(text, "double")
    return sql.when(number.between(-MAX_DOUBLE, MAX_DOUBLE), number)


def _parse_value(paths: Iterable[Path]) -> Column:
    # With an option given, Spark parses the whole value and not only the fields, and so finds broken ones.
    return sql.from_json(sql.col("value").cast("string"), schema_of_paths(paths), {"mode": "PERMISSIVE"})


def _event_time(path: Path | None) -> Column:
    """Return the time of an event; null if it has none, or one whose year has not four digits."""
    time = sql.col("timestamp") if path is None else _parse_time(path)
    return sql.when(sql.unix_millis(time).between(FIRST_MS, LAST_MS), time)


def _parse_time(path: Path) -> Column:
    text = value_at(path)
    number = try_cast(try_cast(text, "double"), "bigint")
    time = sql.when(number.isNotNull(), sql.timestamp_millis(_null_out_of_bounds(number)))
    # A time without a date would be read as one of today.
    return time.when(text.rlike(r"^\s*\d{4}-"), try_cast(text, "timestamp"))


def _null_out_of_bounds(milliseconds: Column) -> Column:
    return sql.when(milliseconds.between(FIRST_MS, LAST_MS), milliseconds)


def _dead_reason() -> Column:
    broken = sql.col(PARSED).isNull() | sql.col(PARSED).getField(CORRUPT).isNotNull()
    return sql.when(broken, sql.lit(MALFORMED)).when(sql.col(TIME).isNull(), sql.lit(NO_TIME))


def _window_ends(windows: WindowLengths) -> tuple[Column, Column]:
    """Return the ends of an event's first and last window in milliseconds; a window's end is not part of it."""
    slide = sql.lit(windows.slide_ms)
    time_ms = sql.unix_millis(TIME)
    last_end = time_ms - sql.pmod(time_ms, slide) + windows.length_ms
    # The first window is the first that begins after the event's time less a window's length.
    before = time_ms - windows.length_ms
    first_end = before - sql.pmod(before, slide) + windows.slide_ms + windows.length_ms
    return first_end, last_end
