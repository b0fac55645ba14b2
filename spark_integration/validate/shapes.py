"""A type of Spark's, with the converter that makes values that pyarrow takes for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

Convert = Callable[[Any], Any]


class Shape(NamedTuple):
    """A type and its converter, which is never called with None; without a converter, values are taken as they are."""

    type: DataType
    convert: Convert | None = None


def struct_of(fields: Sequence[tuple[str, Shape]]) -> Shape:
    """Return the shape of a mapping with these fields; a missing field is null."""
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
    """Return the shape of a mapping whose keys are text."""
    convert = content.convert or _keep_value
    kind = MapType(StringType(), content.type)
    return Shape(kind, lambda values: [(key, _convert_or_none(convert, value)) for key, value in values.items()])


def json_text() -> Shape:
    """Return the shape of values without a type in Spark (a type within itself): their JSON as text."""
    return Shape(StringType(), lambda value: json.dumps(_drop_names(value), default=_format_plain, ensure_ascii=False))


def _drop_names(value: Any) -> Any:
    """Remove the names that fastavro puts before values."""
    if isinstance(value, dict):
        return {name: _drop_names(content) for name, content in value.items()}
    if isinstance(value, list):
        return [_drop_names(item) for item in value]
    return _drop_names(value[1]) if isinstance(value, tuple) else value


def _format_plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _convert_or_none(convert: Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _keep_value(value: Any) -> Any:
    return value
