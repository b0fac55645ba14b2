"""JSON values read as Spark's types, with the paths of values that do not fit and of differences from the schema."""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Mapping
from datetime import date, datetime, timezone
from decimal import Context, Decimal
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_integration.errors import PipelineError
from spark_integration.validate.dead import DeadLetterError, shorten_value
from spark_integration.validate.drift import CHANGED, MISSING, NEW, RecordDrift

Read = Callable[[Any, RecordDrift], Any]
# Makes the reader of a value at a path.
Make = Callable[[str], Read]
MOST_WHOLE = 1 << 63
DIGITS = Context(prec=100)
INTEGERS: Mapping[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}


def parse_json(payload: bytes, exact: bool = False) -> Any:
    """Parse a JSON text; numbers with a fraction become floats, or Decimals if *exact*. Raises DeadLetterError."""
    try:
        return json.loads(payload, parse_float=Decimal if exact else float, parse_constant=_reject_number)
    except (ValueError, ArithmeticError, RecursionError) as problem:
        raise DeadLetterError("malformed", f"is no JSON: {problem}") from None


def _reject_number(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def needs_digits(kind: DataType) -> bool:
    """Return whether a number may become a decimal or a text, for which a float would lose digits."""
    return any(word in kind.json() for word in ('"decimal(', '"string"'))


def make_reader(kind: DataType, path: str = "value") -> Read:
    """Return a function that reads a JSON value as *kind*; raises PipelineError if JSON has no such values.

    The function raises DeadLetterError if a value does not fit, and adds differences from the schema to the drift.
    """
    if isinstance(kind, StructType):
        if not kind.fields:
            raise PipelineError(f"{path} has no fields, which Spark does not write: give it some, or make it a string")
        return _make_struct_reader(kind, path)
    if isinstance(kind, ArrayType):
        return _make_array_reader(make_reader(kind.elementType, f"{path}[]"), path)
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return _make_map_reader(make_reader(kind.valueType, f"{path}{{}}"), path)
    if type(kind) in INTEGERS:
        return _make_integer_reader(INTEGERS[type(kind)], kind.simpleString(), path)
    if isinstance(kind, StringType):
        return _make_string_reader(path)
    if type(kind) in LEAVES:
        return _make_leaf_reader(kind, path)
    raise PipelineError(f"{path} is {kind.simpleString()}, which JSON cannot hold here: give it another type")


def _note_mismatch(path: str, kind: str, value: Any, drift: RecordDrift) -> DeadLetterError:
    drift.differs.add(f"{CHANGED} {path}")
    return DeadLetterError("does-not-fit", f"{path} is {shorten_value(_plain_number(value))}, not {kind}")


def _plain_number(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _make_struct_reader(kind: StructType, path: str) -> Read:
    fields = [
        (field.name, make_reader(field.dataType, f"{path}.{field.name}"), field.nullable) for field in kind.fields
    ]
    names = {field.name for field in kind.fields}
    paths = {f"{path}.{name}" for name in names}

    def read(value: Any, drift: RecordDrift) -> Any:
        if type(value) is not dict:
            raise _note_mismatch(path, "an object", value, drift)
        if value.keys() == names:
            drift.has |= paths
        else:
            drift.has.update(f"{path}.{name}" for name in names & value.keys())
            drift.differs.update(f"{NEW} {path}.{name}" for name in value.keys() - names)
            drift.differs.update(f"{MISSING} {path}.{name}" for name in names - value.keys())
        fields_read = {}
        for name, read_field, nullable in fields:
            item = value.get(name)
            if item is not None:
                fields_read[name] = read_field(item, drift)
            elif not nullable:
                raise DeadLetterError("does-not-fit", f"{path}.{name} is missing, and must not be null")
        return fields_read

    return read


def _make_array_reader(element: Read, path: str) -> Read:
    def read(value: Any, drift: RecordDrift) -> Any:
        if type(value) is not list:
            raise _note_mismatch(path, "an array", value, drift)
        return [None if item is None else element(item, drift) for item in value]

    return read


def _make_map_reader(content: Read, path: str) -> Read:
    def read(value: Any, drift: RecordDrift) -> Any:
        if type(value) is not dict:
            raise _note_mismatch(path, "an object", value, drift)
        return [(key, None if item is None else content(item, drift)) for key, item in value.items()]

    return read


def _make_integer_reader(bits: int, name: str, path: str) -> Read:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def read(value: Any, drift: RecordDrift) -> Any:
        whole = _whole_number(value)
        if whole is None or not low <= whole <= high:
            raise _note_mismatch(path, name, value, drift)
        return whole

    return read


def _whole_number(value: Any) -> int | None:
    """Return 3 for 3 and 3.0; None for a number that is not whole or has far too many digits."""
    if type(value) is int:
        return value
    if type(value) in (float, Decimal) and abs(value) < MOST_WHOLE and value == int(value):
        return int(value)
    return None


def _make_string_reader(path: str) -> Read:
    """Return a reader that keeps other values than text as JSON, like Spark's from_json: no information is lost."""

    def read(value: Any, drift: RecordDrift) -> Any:
        if type(value) is str:
            return value
        drift.differs.add(f"{CHANGED} {path}")
        return _format_json(value)

    return read


def _format_json(value: Any) -> str:
    """Format a parsed value as JSON again, with the digits that its numbers had."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{_format_json(name)}: {_format_json(content)}" for name, content in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _make_leaf_reader(kind: DataType, path: str) -> Read:
    types, convert = LEAVES[type(kind)]
    name = kind.simpleString()

    def read(value: Any, drift: RecordDrift) -> Any:
        if type(value) in types:
            try:
                return convert(value, kind)
            except (ValueError, ArithmeticError):
                pass
        raise _note_mismatch(path, name, value, drift)

    return read


def _parse_time(text: str) -> datetime:
    # Python 3.10 cannot parse a Z.
    return datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith(("Z", "z")) else text)


def _parse_instant(text: str, _: DataType) -> datetime:
    moment = _parse_time(text)
    return moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _parse_local_time(text: str, _: DataType) -> datetime:
    return _parse_time(text).replace(tzinfo=None)


def _parse_decimal(value: Any, kind: DataType) -> Decimal:
    """Bring a number to the scale of the type; raises ValueError if digits would be lost."""
    assert isinstance(kind, DecimalType)
    number = Decimal(value)
    if not number.is_finite() or number.adjusted() >= kind.precision - kind.scale:
        raise ValueError(value)
    if number != number.quantize(Decimal(1).scaleb(-kind.scale), context=DIGITS):
        raise ValueError(value)
    return number


def _make_float_converter(layout: str) -> Callable[[Any, DataType], float]:
    def convert(value: Any, _: DataType) -> float:
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(value)
        struct.pack(layout, number)  # raises OverflowError if it is too large
        return number

    return convert


# The JSON types that each type accepts, and the converter to Python's value.
LEAVES: Mapping[type[DataType], tuple[tuple[type, ...], Callable[[Any, DataType], Any]]] = {
    BooleanType: ((bool,), lambda value, _: value),
    DoubleType: ((int, float, Decimal), _make_float_converter("<d")),
    FloatType: ((int, float, Decimal), _make_float_converter("<f")),
    DecimalType: ((int, float, Decimal, str), _parse_decimal),
    BinaryType: ((str,), lambda value, _: base64.b64decode(value, validate=True)),
    DateType: ((str,), lambda value, _: date.fromisoformat(value)),
    TimestampType: ((str,), _parse_instant),
    TimestampNTZType: ((str,), _parse_local_time),
}
