"""Headers of origin, as `spark_integration.topics.origin` writes and reads them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_integration.topics.origin import COLUMNS, HEADERS_TYPE, add_origin, add_origin_columns, has_passed_cluster

TIME = datetime(2026, 11, 22, 3, 45, 0, 123_000, tzinfo=timezone.utc)
SCHEMA = f"topic string, partition int, offset bigint, timestamp timestamp, headers {HEADERS_TYPE}"


def test_the_last_origin_is_read_and_earlier_ones_stay(spark: Any) -> None:
    place = ("ü", 1, 5_000_000_000, TIME)
    broken = [("kafkacompat-origin-topic", b"t"), ("kafkacompat-origin-offset", b"many")]
    rows = [(*place, None), (*place, [("own", None)]), (*place, broken)]
    frame = spark.createDataFrame(rows, SCHEMA)
    once = add_origin(frame, "C1")
    origins = _read_origins(once, has_passed_cluster("C1"), has_passed_cluster("C2"))
    assert origins == [(*place[:3], TIME.timestamp(), "C1", True, False)] * 3
    twice = add_origin(once.withColumns({"topic": sql.lit("next"), "partition": sql.lit(7)}))
    assert _read_origins(twice, has_passed_cluster("C1")) == [("next", 7, place[2], TIME.timestamp(), None, True)] * 3
    own = [[header.key for header in row.headers[:-9]] for row in twice.collect()]
    assert own == [[], ["own"], [key for key, _ in broken]]
    assert _read_origins(frame) == [(None,) * 5, (None,) * 5, ("t", None, None, None, None)]


def _read_origins(frame: DataFrame, *more: Column) -> list[tuple[Any, ...]]:
    columns = [sql.col(name).cast("double") if kind == "timestamp" else name for name, kind in COLUMNS.items()]
    return [tuple(row) for row in add_origin_columns(frame).select(*columns, *more).collect()]
