"""JSON read as Spark's types: values that fit, values that do not and why, and differences from the schema."""

from __future__ import annotations

import json
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

from spark_integration.errors import PipelineError
from spark_integration.validate.dead import DeadLetterError
from spark_integration.validate.drift import BatchDrift, RecordDrift, drop_optional_fields
from spark_integration.validate.json_values import make_reader, needs_digits, parse_json

MONEY = DecimalType(10, 2)
NOON = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)


def read_value(kind: DataType, text: str, drift: RecordDrift | None = None) -> Any:
    return make_reader(kind)(parse_json(text.encode(), needs_digits(kind)), drift or RecordDrift())


def make_struct(**fields: DataType) -> StructType:
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
        (StringType(), "12345678901234567.10", "12345678901234567.10"),
        (StringType(), '["\\u00e9", {"b": 1e400}, true, null]', '["é", {"b": 1E+400}, true, null]'),
        (DoubleType(), "1e-400", 0.0),
        (FloatType(), "0.5", 0.5),
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
        (make_struct(a=LongType(), b=make_struct(c=StringType())), '{"b": {"c": "x"}}', {"b": {"c": "x"}}),
    ],
)
def test_values_that_fit(kind: DataType, text: str, value: Any) -> None:
    result = read_value(kind, text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "detail"),
    [
        (LongType(), "9223372036854775808", "value is 9223372036854775808, not bigint"),
        (LongType(), "1.5", "value is 1.5, not bigint"),
        (LongType(), "1e300", "value is 1e+300, not bigint"),
        (LongType(), "true", "value is True, not bigint"),
        (LongType(), '"1"', "value is '1', not bigint"),
        (ByteType(), "128", "value is 128, not tinyint"),
        (DoubleType(), "1e400", "value is inf, not double"),
        (FloatType(), "1e300", "value is 1e+300, not float"),
        (FloatType(), "-1e39", "value is -1e+39, not float"),
        (BooleanType(), "1", "value is 1, not boolean"),
        (DoubleType(), '"1"', "value is '1', not double"),
        (BinaryType(), '"%"', "value is '%', not binary"),
        (DateType(), '"2026-13-01"', "value is '2026-13-01', not date"),
        (TimestampType(), '"noon"', "value is 'noon', not timestamp"),
        (MONEY, "0.001", "value is 0.001, not decimal(10,2)"),
        (MONEY, "123456789.5", "value is 123456789.5, not decimal(10,2)"),
        (MONEY, "1e999999999", "value is inf, not decimal(10,2)"),
        (MONEY, '"NaN"', "value is 'NaN', not decimal(10,2)"),
        (make_struct(a=LongType()), "null", "value is None, not an object"),
        (make_struct(a=ArrayType(make_struct(b=LongType()))), '{"a": [{"b": "x"}]}', "value.a[].b is 'x', not bigint"),
        (MapType(StringType(), LongType()), "[]", "value is [], not an object"),
        (ArrayType(LongType()), "{}", "value is {}, not an array"),
    ],
)
def test_values_that_do_not_fit(kind: DataType, text: str, detail: str) -> None:
    drift = RecordDrift()
    with pytest.raises(DeadLetterError) as refused:
        read_value(kind, text, drift)
    assert (refused.value.reason, refused.value.detail) == ("does-not-fit", detail)
    assert list(drift.differs) == [f"changed {detail.partition(' ')[0]}"]


def test_a_field_that_must_be_there() -> None:
    kind = StructType([StructField("a", LongType(), nullable=False)])
    for text in ("{}", '{"a": null}'):
        with pytest.raises(DeadLetterError, match=r"value\.a is missing"):
            read_value(kind, text)


@pytest.mark.parametrize("text", ["", "{", "NaN", "{} {}", "[" * 100_000, "1" * 5_000, '{"b":1e99999999999999999999}'])
def test_bad_json_is_malformed(text: str) -> None:
    with pytest.raises(DeadLetterError) as refused:
        parse_json(text.encode(), exact=True)
    assert refused.value.reason == "malformed"


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(DeadLetterError, match="is no JSON"):
        parse_json(b'"\xff"')


def drift_of_values(kind: DataType, *values: Any) -> dict[str, int]:
    """Return the differences of values, some of which are dead letters."""
    seen = BatchDrift()
    for value in values:
        drift, good = RecordDrift(), True
        try:
            read_value(kind, json.dumps(value), drift)
        except DeadLetterError:
            good = False
        seen.add(drift, good)
    return drop_optional_fields(seen.differs, seen.has)


LONG = LongType()


@pytest.mark.parametrize(
    ("kind", "values", "drift"),
    [
        (make_struct(a=LONG), [{"z": 1}, {"a": 1, "z": 2}], {"new value.z": 2}),
        (make_struct(a=LONG), [{}, {}], {"missing value.a": 2}),
        (make_struct(a=LONG), [{}, {"a": None}], {}),
        # In records that are dead letters, fields may be missing because the record is damaged.
        (make_struct(x=LONG, n=LONG), [{"n": "no"}, {"n": "no"}, {"x": 1, "n": 1}], {"changed value.n": 2}),
        (make_struct(x=LONG, n=LONG), [{"n": 1}, {"x": 1, "n": "no"}], {"missing value.x": 1, "changed value.n": 1}),
        # Once for a record, however many items it has.
        (make_struct(i=ArrayType(make_struct(b=LONG))), [{"i": [{}] * 100}, *[{"i": [{"b": 1}]}] * 50], {}),
        (make_struct(i=ArrayType(make_struct(b=LONG))), [{"i": [{}] * 100}, {"i": [{}]}], {"missing value.i[].b": 2}),
        (make_struct(i=ArrayType(make_struct(b=LONG))), [{"i": [{"b": 1}, {}]}], {}),
        # A missing object has no fields that could be missing.
        (make_struct(o=make_struct(b=LONG)), [{"o": None}, {"o": {}}, {"o": None}], {"missing value.o.b": 1}),
        (make_struct(o=make_struct(b=LONG)), [{"o": None}], {}),
        (
            make_struct(m=MapType(StringType(), make_struct(b=LONG))),
            [{"m": {"k": {"c": 1}}}],
            {"new value.m{}.c": 1, "missing value.m{}.b": 1},
        ),
        (make_struct(a=StringType()), [{"a": 5}, {"a": "x"}], {"changed value.a": 1}),
    ],
)
def test_drift_is_reported_by_path_and_counted_by_record(
    kind: DataType, values: list[Any], drift: dict[str, int]
) -> None:
    assert drift_of_values(kind, *values) == drift


def test_a_type_without_fields() -> None:
    with pytest.raises(PipelineError, match=r"^value\.a has no fields, which Spark does not write"):
        make_reader(make_struct(a=StructType([])))


def test_a_type_that_json_cannot_hold() -> None:
    with pytest.raises(PipelineError, match=r"^value\.a is interval"):
        make_reader(make_struct(a=CalendarIntervalType()))


def test_integers_have_their_bits() -> None:
    low, high = -(2**31), 2**31 - 1
    assert [read_value(IntegerType(), str(number)) for number in (low, high)] == [low, high]
    for number in (low - 1, high + 1):
        with pytest.raises(DeadLetterError):
            read_value(IntegerType(), str(number))
