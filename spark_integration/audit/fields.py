"""Where an audit finds a record's producer, sequence and event time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as sql

from spark_integration.casts import try_cast
from spark_integration.errors import PipelineError

# How many milliseconds a number of that unit is.
UNITS: Mapping[str, float] = {"s": 1000.0, "ms": 1.0, "us": 0.001, "ns": 0.000001}
# What is farther from 1970 is no time; differences of times fit into a bigint.
LATEST_MS = float(2**62)
HEADER = "header:"
HOW = "give $.path (JSON in the value), key, key:$.path or header:NAME"


@dataclass(frozen=True)
class Fields:
    """Where they are, each ``$.path`` (JSON in the value), ``key``, ``key:$.path`` or ``header:NAME``.

    Without a sequence nothing is said of gaps, duplicates and inversions; without a producer all records of a topic
    count as one producer's. An event time is a number of *event_time_unit* since 1970, or ISO 8601; without one it is
    the record's own CreateTime. *first_sequence* is what every producer begins with, where that is known.
    """

    producer: str | None = None
    sequence: str | None = None
    event_time: str | None = None
    event_time_unit: str = "ms"
    first_sequence: int | None = None

    def __post_init__(self) -> None:
        for place in (self.producer, self.sequence, self.event_time):
            if place is not None:
                check_place(place)
        if self.event_time_unit not in UNITS:
            raise PipelineError(f"{self.event_time_unit!r} is no unit of time: give one of {', '.join(UNITS)}")

    def columns(self) -> dict[str, Column]:
        """Return the columns `producer`, `sequence` and `event_ms`, out of `key`, `value`, `headers`, `timestamp`."""
        producer = text_at(self.producer) if self.producer else sql.lit("")
        return {
            "producer": producer,
            "sequence": try_cast(text_at(self.sequence), "bigint") if self.sequence else sql.lit(None).cast("bigint"),
            "event_ms": self._event_ms(),
        }

    def _event_ms(self) -> Column:
        if self.event_time is None:
            return sql.when(sql.col("timestampType") == 0, sql.unix_millis("timestamp"))
        text = text_at(self.event_time)
        number = sql.round(try_cast(text, "double") * UNITS[self.event_time_unit])
        # NaN is greater than all numbers.
        is_time = sql.abs(number) <= LATEST_MS
        return sql.coalesce(sql.when(is_time, number.cast("bigint")), sql.unix_millis(try_cast(text, "timestamp")))


def check_place(place: str) -> None:
    """Refuse what names no place in a record; raises PipelineError."""
    path = place.removeprefix("key:")
    if place != "key" and not path.startswith("$") and not (path.startswith(HEADER) and len(path) > len(HEADER)):
        raise PipelineError(f"{place!r} is no place in a record: {HOW}")


def text_at(place: str) -> Column:
    """Return the text at a place of the record; null where there is none."""
    if place == "key":
        return sql.col("key").cast("string")
    if place.startswith(HEADER):
        name = place.removeprefix(HEADER)
        named = sql.filter("headers", lambda header: header["key"] == name)
        return sql.try_element_at(named, sql.lit(-1))["value"].cast("string")
    column = "key" if place.startswith("key:") else "value"
    return sql.get_json_object(sql.col(column).cast("string"), place.removeprefix("key:"))
