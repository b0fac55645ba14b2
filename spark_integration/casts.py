"""A cast that gives null where a text is no such value, in every release of Spark."""

from __future__ import annotations

from pyspark.sql import Column


def try_cast(column: Column, kind: str) -> Column:
    """Cast *column* to the type *kind*; null where it cannot be.

    pyspark 3.5 has no `Column.try_cast`; its `cast` does the same unless a user switches ANSI mode on.
    """
    # A column itself has every name in 3.5: that of a field.
    return column.try_cast(kind) if hasattr(Column, "try_cast") else column.cast(kind)
