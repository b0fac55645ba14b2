"""JSON read as Spark's types: what fits, what does not and why, and what differs from the schema."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CalendarIntervalType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_integration.errors import PipelineError
from spark_integration.validate.dead import DeadLetterError
from spark_integration.validate.json_values import Drift, holds_decimals, loads, reader_of

MONEY = DecimalType(10, 2)
NOON = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)


def read(kind: DataType, text: str, drift: Drift | None = None) -> Any:
    found = Counter() if drift is None else drift
    return reader_of(kind)(loads(text.encode(), holds_decimals(kind)), found)


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (LongType(), "9223372036854775807", 2**63 - 1),
        (LongType(), "3.0", 3),
        (ByteType(), "-128", -128),
        (DoubleType(), "1", 1.0),
        (DoubleType(), "1.5", 1.5),
        (BooleanType(), "true", True),
        (StringType(), '"é\\n"', "é\n"),
        (StringType(), '{"a": [1, 2.5]}', '{"a": [1, 2.5]}'),
        (BinaryType(), '"AAE="', b"\0\1"),
        (DateType(), '"2026-05-04"', date(2026, 5, 4)),
        (TimestampType(), '"2026-05-04T12:00:00Z"', NOON),
        (TimestampType(), '"2026-05-04T14:00:00+02:00"', NOON),
        (TimestampType(), '"2026-05-04 12:00:00"', NOON),
        (TimestampNTZType(), '"2026-05-04T12:00:00"', NOON.replace(tzinfo=None)),
        (MONEY, "12345678.9", Decimal("12345678.9")),
        (MONEY, '"-0.01"', Decimal("-0.01")),
        (DecimalType(38, 0), "99999999999999999999999999999999999999", Decimal("9" * 38)),
        (ArrayType(LongType()), "[1, null]", [1, None]),
        (MapType(StringType(), MONEY), '{"a": 0.10, "b": null}', [("a", Decimal("0.10")), ("b", None)]),
        (struct(a=LongType(), b=struct(c=StringType())), '{"b": {"c": "x"}}', {"b": {"c": "x"}}),
    ],
)
def test_values_that_fit(kind: DataType, text: str, value: Any) -> None:
    found = read(kind, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "detail"),
    [
        (LongType(), "9223372036854775808", "value is 9223372036854775808, not bigint"),
        (LongType(), "1.5", "value is 1.5, not bigint"),
        (LongType(), "1e300", "value is 1e+300, not bigint"),
        (LongType(), "true", "value is True, not bigint"),
        (LongType(), '"1"', "value is '1', not bigint"),
        (ByteType(), "128", "value is 128, not tinyint"),
        (BooleanType(), "1", "value is 1, not boolean"),
        (DoubleType(), '"1"', "value is '1', not double"),
        (BinaryType(), '"%"', "value is '%', not binary"),
        (DateType(), '"2026-13-01"', "value is '2026-13-01', not date"),
        (TimestampType(), '"noon"', "value is 'noon', not timestamp"),
        (MONEY, "0.001", "value is 0.001, not decimal(10,2)"),
        (MONEY, "123456789.5", "value is 123456789.5, not decimal(10,2)"),
        (MONEY, "1e999999999", "value is inf, not decimal(10,2)"),
        (MONEY, '"NaN"', "value is 'NaN', not decimal(10,2)"),
        (struct(a=LongType()), "null", "value is None, not an object"),
        (struct(a=ArrayType(struct(b=LongType()))), '{"a": [{"b": "x"}]}', "value.a[].b is 'x', not bigint"),
        (MapType(StringType(), LongType()), "[]", "value is [], not an object"),
        (ArrayType(LongType()), "{}", "value is {}, not an array"),
    ],
)
def test_values_that_do_not_fit(kind: DataType, text: str, detail: str) -> None:
    drift: Drift = Counter()
    with pytest.raises(DeadLetterError) as refused:
        read(kind, text, drift)
    assert (refused.value.reason, refused.value.detail) == ("does-not-fit", detail)
    assert list(drift) == [f"changed {detail.partition(' ')[0]}"]


def test_a_field_that_must_be_there() -> None:
    kind = StructType([StructField("a", LongType(), nullable=False)])
    for text in ("{}", '{"a": null}'):
        with pytest.raises(DeadLetterError, match=r"value\.a is missing"):
            read(kind, text)


@pytest.mark.parametrize("text", ["", "{", "NaN", "{} {}", "[" * 100_000, "1" * 5_000])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(DeadLetterError) as refused:
        loads(text.encode())
    assert refused.value.reason == "malformed"


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(DeadLetterError, match="is no JSON"):
        loads(b'"\xff"')


def test_drift_is_counted_by_path() -> None:
    kind = struct(a=LongType(), b=struct(c=StringType()), d=ArrayType(struct(e=LongType())))
    drift: Drift = Counter()
    for value in ({"a": 1, "z": 2}, {"a": 1, "b": {"c": 5}, "d": [{"e": 1, "f": 1}]}, {"a": 1, "b": {}, "d": []}):
        read(kind, json.dumps(value), drift)
    wanted = {"new value.z", "missing value.d", "missing value.b", "missing value.b.c"}
    assert drift == dict.fromkeys(wanted | {"changed value.b.c", "new value.d[].f"}, 1)


def test_a_type_that_json_cannot_hold() -> None:
    with pytest.raises(PipelineError, match=r"^value\.a is interval"):
        reader_of(struct(a=CalendarIntervalType()))


def test_integers_have_their_bits() -> None:
    low, high = -(2**31), 2**31 - 1
    assert [read(IntegerType(), str(number)) for number in (low, high)] == [low, high]
    for number in (low - 1, high + 1):
        with pytest.raises(DeadLetterError):
            read(IntegerType(), str(number))
