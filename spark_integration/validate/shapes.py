"""A type as Spark has it, and what makes of a decoded value one that pyarrow takes for that type."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

Convert = Callable[[Any], Any]


class Shape(NamedTuple):
    """*convert* is never given None; where it is None itself, values are taken as they are."""

    type: DataType
    convert: Convert | None = None


def struct_of(fields: Sequence[tuple[str, Shape]]) -> Shape:
    """Return the shape of a mapping with these fields; one that it lacks is null."""
    kind = StructType([StructField(name, shape.type) for name, shape in fields])
    if all(shape.convert is None for _, shape in fields):
        return Shape(kind)
    converts = [(name, shape.convert or _keep_value) for name, shape in fields]
    return Shape(kind, lambda value: {name: _convert_or_none(convert, value.get(name)) for name, convert in converts})


def array_of(element: Shape) -> Shape:
    """Return the shape of a list."""
    convert = element.convert
    if convert is None:
        return Shape(ArrayType(element.type))
    return Shape(ArrayType(element.type), lambda values: [_convert_or_none(convert, value) for value in values])


def map_of(content: Shape) -> Shape:
    """Return the shape of a mapping from text."""
    convert = content.convert or _keep_value
    kind = MapType(StringType(), content.type)
    return Shape(kind, lambda values: [(key, _convert_or_none(convert, value)) for key, value in values.items()])


def json_text() -> Shape:
    """Return the shape of what has no type of its own in Spark (a type within itself): its JSON as text."""
    return Shape(StringType(), lambda value: json.dumps(_drop_names(value), default=_format_plain, ensure_ascii=False))


def _drop_names(value: Any) -> Any:
    """Leave out the names that fastavro puts before values."""
    if isinstance(value, dict):
        return {name: _drop_names(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_drop_names(one) for one in value]
    return _drop_names(value[1]) if isinstance(value, tuple) else value


def _format_plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _convert_or_none(convert: Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _keep_value(value: Any) -> Any:
    return value
