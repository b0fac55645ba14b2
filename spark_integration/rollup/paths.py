"""Fields of a JSON value by their paths: ``amount``, ``user.id`` or ``$.user.id``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from pyspark.sql.types import StringType, StructField, StructType

from spark_integration.errors import PipelineError

Path = tuple[str, ...]
# Where Spark puts what is no JSON object.
CORRUPT = "_corrupt_record"


def path_of(text: str) -> Path:
    """Split a path into names; raises PipelineError."""
    names = tuple(text.strip().removeprefix("$.").split("."))
    if not all(re.fullmatch(r"[^\s\[\]$*][^\[\]$*]*", name) for name in names):
        raise PipelineError(f"{text!r} is no path: write names with dots between them, like user.id")
    return names


def column_name(path: Path) -> str:
    """Return a name that every table format takes."""
    return re.sub(r"\W", "_", "_".join(path))


def schema_of(paths: Iterable[Path]) -> StructType:
    """Return the schema in which Spark reads just these fields, each as text; raises PipelineError."""
    wanted = sorted(set(paths))
    for path, longer in product(wanted, wanted):
        if path != longer and path == longer[: len(path)]:
            raise PipelineError(f"{'.'.join(path)} is asked for as a value, and {'.'.join(longer)} within it: give one")
    return StructType([*_fields(wanted), StructField(CORRUPT, StringType())])


def _fields(paths: Iterable[Path]) -> list[StructField]:
    below: dict[str, list[Path]] = {}
    for name, *rest in paths:
        below.setdefault(name, []).extend([tuple(rest)] if rest else [])
    return [StructField(name, StructType(_fields(rest)) if rest else StringType()) for name, rest in below.items()]
