"""The producer, sequence and event time of a record, as columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sql

from spark_integration.audit.settings import HEADER, TIME_UNITS_MS, AuditFields
from spark_integration.topics.casts import try_cast

# Numbers farther from 1970 are no times: differences of times fit into a bigint.
LATEST_MS = float(2**62)


def field_columns(fields: AuditFields) -> dict[str, Column]:
    """Return the columns `producer`, `sequence` and `event_ms`, made of `key`, `value`, `headers` and `timestamp`."""
    no_sequence = sql.lit(None).cast("bigint")
    return {
        "producer": text_at(fields.producer) if fields.producer else sql.lit(""),
        "sequence": try_cast(text_at(fields.sequence), "bigint") if fields.sequence else no_sequence,
        "event_ms": _event_ms(fields),
    }


def _event_ms(fields: AuditFields) -> Column:
    if fields.event_time is None:
        return sql.when(sql.col("timestampType") == 0, sql.unix_millis("timestamp"))
    text = text_at(fields.event_time)
    number = sql.round(try_cast(text, "double") * TIME_UNITS_MS[fields.event_time_unit])
    # NaN is greater than all numbers.
    is_time = sql.abs(number) <= LATEST_MS
    return sql.coalesce(sql.when(is_time, number.cast("bigint")), sql.unix_millis(try_cast(text, "timestamp")))


def text_at(place: str) -> Column:
    """Return the text at a place of the record; null if the record has none there."""
    if place == "key":
        return sql.col("key").cast("string")
    if place.startswith(HEADER):
        name = place.removeprefix(HEADER)
        named = sql.filter("headers", lambda header: header["key"] == name)
        return sql.try_element_at(named, sql.lit(-1))["value"].cast("string")
    column = "key" if place.startswith("key:") else "value"
    return sql.get_json_object(sql.col(column).cast("string"), place.removeprefix("key:"))
