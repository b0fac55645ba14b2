"""Casts and types that every release of Spark has under some name."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa


def try_cast(column: Column, kind: str) -> Column:
    """Cast *column* to the type *kind*; a value that cannot be cast becomes null.

    pyspark 3.5 has no `Column.try_cast`; its `cast` does the same unless a user switches ANSI mode on.
    """
    # In 3.5 a column has every attribute, as that of a field, so the class is asked.
    return column.try_cast(kind) if hasattr(Column, "try_cast") else column.cast(kind)


def arrow_type(kind: DataType) -> pa.DataType:
    """Return Arrow's type for one of Spark's; points in time are in UTC.

    pyspark 4.2 needs the zone as an argument, which earlier releases do not have.
    """
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
    return to_arrow_type(kind, **zone)
