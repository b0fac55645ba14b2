"""A type as Spark has it, and what makes of a decoded value one that pyarrow takes for that type."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from pyspark.sql.types import DataType

Convert = Callable[[Any], Any]


class Shape(NamedTuple):
    """*convert* is never given None; where it is None itself, values are taken as they are."""

    type: DataType
    convert: Convert | None = None


def json_of(value: Any) -> str:
    """Return as JSON what has no type of its own in Spark (a type within itself); bytes are hexadecimal digits."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
