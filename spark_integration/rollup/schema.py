"""The schema in which Spark reads the fields of JSON values that a rollup needs."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.types import StringType, StructField, StructType

from spark_integration.rollup.paths import Path

# The column of values that are no JSON objects.
CORRUPT = "_corrupt_record"


def schema_of_paths(paths: Iterable[Path]) -> StructType:
    """Return the schema of just these fields, each as text; no path may lead into another one (`check_paths`)."""
    return StructType([*_build_fields(sorted(set(paths))), StructField(CORRUPT, StringType())])


def _build_fields(paths: Iterable[Path]) -> list[StructField]:
    below: dict[str, list[Path]] = {}
    for name, *rest in paths:
        below.setdefault(name, []).extend([tuple(rest)] if rest else [])
    return [
        StructField(name, StructType(_build_fields(rest)) if rest else StringType()) for name, rest in below.items()
    ]
