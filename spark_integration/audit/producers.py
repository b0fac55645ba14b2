"""Figures of topics and producers: how many records each has, from when to when, and how many findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from spark_integration.audit.findings import Row
from spark_integration.audit.places import AuditedPlace
from spark_integration.audit.sequences import FARTHEST

KEYS = ("topic", "producer")


def topic_rows(place: AuditedPlace, offsets: Mapping[str, int | None]) -> list[Row]:
    """Return a row for each topic of *offsets*, which holds the number of offsets that were read of it, if it is known."""
    counted = (
        _count_by_producer(place)
        .groupBy("topic")
        .agg(
            sql.sum("records").alias("records"),
            sql.count("producer").alias("producers"),
            sql.sum("numbered").alias("numbered"),
            sql.sum("timed").alias("timed"),
            sql.sum(sql.when(sql.col("producer").isNotNull(), sql.col("records"))).alias("attributed"),
            sql.min("first_ms").alias("first_ms"),
            sql.max("last_ms").alias("last_ms"),
        )
    )
    counted_rows = {row.topic: row for row in counted.collect()}
    return [_topic_row(place.name, topic, offsets[topic], counted_rows.get(topic)) for topic in sorted(offsets)]


def _topic_row(place: str, topic: str, offsets: int | None, counted: Any) -> Row:
    """Return the row of a topic; *counted* is None if it has no record."""
    numbers = ("records", "producers", "attributed", "numbered", "timed")
    return {
        "place": place,
        "topic": topic,
        "offsets": offsets,
        **{name: (counted[name] or 0) if counted else 0 for name in numbers},
        "first_ms": counted.first_ms if counted else None,
        "last_ms": counted.last_ms if counted else None,
    }


def producer_rows(place: AuditedPlace, findings: DataFrame, limit: int) -> list[Row]:
    """Return a row for each of at most *limit* producers: first those with most findings, then those with most records."""
    kinds = ("gap", "duplicate", "inversion")
    # A sequence that is no real one may stand for more than a bigint holds.
    total = sql.least(sql.sum(sql.col("count").cast("decimal(38,0)")), sql.lit(FARTHEST)).cast("bigint")
    counted = findings.groupBy(*KEYS).pivot("kind", list(kinds)).agg(total)
    table = (
        _count_by_producer(place).where("producer is not null").join(counted, list(KEYS), "left").fillna(0, list(kinds))
    )
    trouble = sum((sql.col(kind).cast("double") for kind in kinds), sql.lit(0))
    first = table.orderBy(trouble.desc(), sql.col("records").desc(), *KEYS).limit(limit)
    return [{"place": place.name, **row.asDict()} for row in first.collect()]


def _count_by_producer(place: AuditedPlace) -> DataFrame:
    return place.visible.groupBy(*KEYS).agg(
        sql.count("*").alias("records"),
        sql.count("sequence").alias("numbered"),
        sql.count("event_ms").alias("timed"),
        sql.min("sequence").alias("first_sequence"),
        sql.max("sequence").alias("last_sequence"),
        sql.min("broker_ms").alias("first_ms"),
        sql.max("broker_ms").alias("last_ms"),
    )
