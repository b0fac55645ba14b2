"""How long records took from stage to stage."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from spark_integration.audit.findings import Row
from spark_integration.audit.places import AuditedPlace
from spark_integration.audit.settings import PERCENTILES

# The rank of an approximate percentile is wrong by at most 1/100,000 of the records (percentile_approx).
ACCURACY = 100_000


def stage_columns(*, by_field: bool) -> dict[str, Column]:
    """Return the stages of a record's way in milliseconds; a stage is null if the record's timestamps do not tell it.

    A record's timestamp is the broker's if the topic has LogAppendTime (timestampType 1), and else the producer's.
    *by_field*: event times come from a field, and so differ from the producer's timestamp.
    """
    event, timestamp, archived = sql.col("event_ms"), sql.col("broker_ms"), sql.col("archived_ms")
    by_broker = sql.col("timestamp_type") == 1
    producer = sql.when(~by_broker, timestamp - event) if by_field else sql.lit(None).cast("bigint")
    return {
        "event-producer": producer,
        "event-broker": sql.when(by_broker, timestamp - event),
        "broker-archive": sql.when(by_broker, archived - timestamp),
        "event-archive": archived - event,
    }


def measure_latencies(place: AuditedPlace, *, by_field: bool) -> DataFrame:
    """Return a row for each topic and stage: `records`, percentiles and maximum in milliseconds, and the negative ones."""
    return (
        stage_latencies(place, by_field=by_field)
        .groupBy("topic", "stage")
        .agg(
            sql.count("*").alias("records"),
            percentile_column("ms").alias("percentiles"),
            sql.max("ms").alias("max"),
            sql.sum((sql.col("ms") < 0).cast("bigint")).alias("negative"),
        )
    )


def latency_rows(place: AuditedPlace, *, by_field: bool) -> list[Row]:
    """Return the rows of `measure_latencies`, with the percentiles by their names."""
    latencies = measure_latencies(place, by_field=by_field).orderBy("topic", "stage").collect()
    return [
        {
            "place": place.name,
            "topic": row.topic,
            "stage": row.stage,
            "records": row.records,
            **name_percentiles(row.percentiles),
            "max": row.max,
            "negative": row.negative,
        }
        for row in latencies
    ]


def name_percentiles(figures: Sequence[int]) -> dict[str, int]:
    """Return the figures by the names of `PERCENTILES`."""
    return dict(zip(PERCENTILES, figures, strict=True))


def stage_latencies(place: AuditedPlace, *, by_field: bool) -> DataFrame:
    """Return a row for each record and stage that it tells: `topic`, `broker_ms`, `stage`, `ms`."""
    named = stage_columns(by_field=by_field).items()
    stages = sql.array(*(sql.struct(sql.lit(name).alias("stage"), column.alias("ms")) for name, column in named))
    return place.visible.select("topic", "broker_ms", sql.inline(stages)).where("ms is not null")


def percentile_column(column: str) -> Column:
    """Aggregate a column to its `PERCENTILES`, with Spark's percentile_approx."""
    return sql.percentile_approx(column, list(PERCENTILES.values()), ACCURACY)
