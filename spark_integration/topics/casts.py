"""Casts and types that every release of Spark has, but not by the same call."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa


def try_cast(column: Column, kind: str) -> Column:
    """Cast *column* to the type *kind*; null where it cannot be.

    pyspark 3.5 has no `Column.try_cast`; its `cast` does the same unless a user switches ANSI mode on.
    """
    # A column itself has every name in 3.5: that of a field.
    return column.try_cast(kind) if hasattr(Column, "try_cast") else column.cast(kind)


def arrow_type(kind: DataType) -> pa.DataType:
    """Return what Arrow has for a type of Spark's; points in time are UTC's.

    pyspark 4.2 has to be told so, and those before cannot be.
    """
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
    return to_arrow_type(kind, **zone)
