"""Frames joined with thousands of intervals, as topics with thousands of partitions need."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as sql

from spark_integration.topics.intervals import covering_condition, records_outside, records_within, spans_of
from spark_integration.topics.offsets import RecordSpan, TopicPartition

pytestmark = pytest.mark.spark

PARTITIONS = 5_000
OFFSETS = 6


@pytest.fixture
def frame(spark: Any) -> Any:
    """Six records of each partition."""
    columns = [
        sql.lit("t").alias("topic"),
        sql.expr(f"cast(id % {PARTITIONS} as int) as partition"),
        sql.expr(f"id div {PARTITIONS} as offset"),
    ]
    return spark.range(PARTITIONS * OFFSETS).select(*columns)


INTERVALS = {TopicPartition("t", number): [(0, 2), (4, 5)] for number in range(PARTITIONS)}


def count_offsets(frame: Any) -> dict[int, int]:
    return {row.offset: row["count"] for row in frame.groupBy("offset").count().collect()}


def test_within_and_outside(frame: Any) -> None:
    assert count_offsets(records_within(frame, INTERVALS)) == dict.fromkeys((0, 1, 4), PARTITIONS)
    assert count_offsets(records_outside(frame, INTERVALS)) == dict.fromkeys((2, 3, 5), PARTITIONS)
    assert count_offsets(records_within(frame, {})) == {}
    assert records_outside(frame, {TopicPartition("t", 0): []}) is frame


def test_spans_count_the_records_of_each_interval(frame: Any) -> None:
    assert covering_condition(INTERVALS).count("OR") == 0
    spans = spans_of(frame.where(covering_condition(INTERVALS)), INTERVALS)
    assert {span for (span,) in spans} == {
        RecordSpan("t", number, *span) for number in range(PARTITIONS) for span in ((0, 1, 2), (4, 4, 1))
    }


def test_files_are_looked_for_by_thousands_of_topics(frame: Any) -> None:
    several = {TopicPartition(f"t{number}", 0): [(0, 2)] for number in range(2_000)}
    assert frame.where(covering_condition({**several, TopicPartition("t", 3): [(0, 2)]})).count() == 2
