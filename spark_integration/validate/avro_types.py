"""Avro's types as Spark's: one table, and what their raw values become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_integration.validate.shapes import Shape

MOST_DIGITS = 38
EPOCH = datetime(1970, 1, 1)
EPOCH_UTC = EPOCH.replace(tzinfo=timezone.utc)
MILLIS, MICROS, DAYS = timedelta(milliseconds=1), timedelta(microseconds=1), timedelta(days=1)
RECORDS = ("record", "error")
TIME_SPAN = StructType([StructField(name, LongType()) for name in ("months", "days", "milliseconds")])


def _instant(unit: timedelta, epoch: datetime) -> Callable[[int], Any]:
    return lambda value: epoch + value * unit


def _clock(unit: timedelta) -> Callable[[int], str]:
    """Write a time of day as ISO 8601, for Spark has no type for it."""
    return lambda value: (EPOCH + value * unit).time().isoformat("microseconds")


def _time_span(value: bytes) -> dict[str, int]:
    parts = (int.from_bytes(value[begin : begin + 4], "little") for begin in (0, 4, 8))
    return dict(zip(TIME_SPAN.names, parts, strict=True))


PRIMITIVE: Mapping[str, Shape] = {
    "null": Shape(StringType()),
    "boolean": Shape(BooleanType()),
    "int": Shape(IntegerType()),
    "long": Shape(LongType()),
    "float": Shape(FloatType()),
    "double": Shape(DoubleType()),
    "bytes": Shape(BinaryType()),
    "fixed": Shape(BinaryType()),
    "string": Shape(StringType()),
    "enum": Shape(StringType()),
}
# Other logical types, timestamp-nanos among them, are what lies under them; decimals are in _decimal.
LOGICAL: Mapping[tuple[str, str], Shape] = {
    ("int", "date"): Shape(DateType(), lambda value: (EPOCH + value * DAYS).date()),
    ("int", "time-millis"): Shape(StringType(), _clock(MILLIS)),
    ("long", "time-micros"): Shape(StringType(), _clock(MICROS)),
    ("long", "timestamp-millis"): Shape(TimestampType(), _instant(MILLIS, EPOCH_UTC)),
    ("long", "timestamp-micros"): Shape(TimestampType(), _instant(MICROS, EPOCH_UTC)),
    ("long", "local-timestamp-millis"): Shape(TimestampNTZType(), _instant(MILLIS, EPOCH)),
    ("long", "local-timestamp-micros"): Shape(TimestampNTZType(), _instant(MICROS, EPOCH)),
    ("string", "uuid"): Shape(StringType(), lambda value: str(UUID(value))),
    ("fixed", "uuid"): Shape(StringType(), lambda value: str(UUID(bytes=value))),
    ("fixed", "duration"): Shape(TIME_SPAN, _time_span),
}
# Branches of a union that one type of Spark's holds.
JOINED: Sequence[tuple[set[str], DataType]] = (({"int", "long"}, LongType()), ({"float", "double"}, DoubleType()))


def whole(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return what a schema that fastavro has parsed stands for: a list of branches, or a mapping with its `type`."""
    if isinstance(schema, list):
        return schema
    if isinstance(schema, str):
        return {"type": schema} if schema in PRIMITIVE else named[schema]
    kind = schema["type"]
    known = isinstance(kind, str) and (kind in PRIMITIVE or kind in RECORDS or kind in ("array", "map"))
    return schema if known else whole(kind, named)


def leaf(schema: Mapping[str, Any]) -> Shape:
    """Return the shape of what has nothing within it."""
    kind, logical = schema["type"], str(schema.get("logicalType"))
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(int(schema["precision"]), int(schema.get("scale", 0)))
    return LOGICAL.get((kind, logical)) or PRIMITIVE[kind]


def _decimal(precision: int, scale: int) -> Shape:
    def convert(value: bytes) -> Decimal:
        unscaled = int.from_bytes(value, "big", signed=True)
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))

    if precision > MOST_DIGITS:
        return Shape(StringType(), lambda value: str(convert(value)))
    return Shape(DecimalType(precision, scale), convert)


def not_null(branches: Sequence[Any]) -> list[Any]:
    """Return the branches of a union but for null."""
    return [one for one in branches if one != "null" and one != {"type": "null"}]


def joined(branches: Sequence[Any]) -> DataType | None:
    """Return the type that holds all branches, where they are numbers of one kind."""
    kinds = {one if isinstance(one, str) else str(one.get("logicalType") or one["type"]) for one in branches}
    return next((kind for numbers, kind in JOINED if kinds <= numbers), None)


class Types:
    """Finds types; one that is met within itself is JSON text, for Spark's types end somewhere, and have fields."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._within: list[str] = []

    def of(self, schema: Any) -> DataType:
        """Return the type of a schema that fastavro has parsed."""
        found = whole(schema, self._named)
        if isinstance(found, list):
            return self._union(not_null(found))
        if found["type"] in RECORDS:
            return self._record(found)
        if found["type"] == "array":
            return ArrayType(self.of(found["items"]))
        if found["type"] == "map":
            return MapType(StringType(), self.of(found["values"]))
        return leaf(found).type

    def _record(self, schema: Mapping[str, Any]) -> DataType:
        name = schema["name"]
        if name in self._within or not schema["fields"]:
            return StringType()
        self._within.append(name)
        try:
            return StructType([StructField(field["name"], self.of(field["type"])) for field in schema["fields"]])
        finally:
            self._within.pop()

    def _union(self, branches: Sequence[Any]) -> DataType:
        """A struct has a field for each branch, of which one is not null (as Spark's own from_avro has it)."""
        if len(branches) < 2:
            return self.of(branches[0]) if branches else StringType()
        members = [StructField(f"member{number}", self.of(one)) for number, one in enumerate(branches)]
        return joined(branches) or StructType(members)
