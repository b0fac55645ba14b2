"""The measures of a rollup: a small table of aggregates over any number of events in any order. Imports no pyspark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from spark_integration.errors import PipelineError
from spark_integration.rollup.paths import Path, column_name, parse_path


class Aggregate(NamedTuple):
    """An aggregate: its function in pyspark.sql.functions, and whether it reads values as numbers or as text."""

    function: str
    of_numbers: bool


AGGREGATES: Mapping[str, Aggregate] = {
    "count": Aggregate("count", False),
    "sum": Aggregate("sum", True),
    "min": Aggregate("min", True),
    "max": Aggregate("max", True),
    "avg": Aggregate("avg", True),
    "approx_distinct": Aggregate("approx_count_distinct", False),
}
_MEASURE = re.compile(r"(\w+)\s*(?:\(\s*([^()]+?)\s*\))?(?:\s+as\s+(\w+))?")


class Measure(NamedTuple):
    """One column of the result; without a path it counts events."""

    name: str
    aggregate: str
    path: Path | None


def parse_measures(text: str) -> list[Measure]:
    """Parse ``sum(amount),count,max(a.b) as highest``; raises PipelineError for an aggregate that is not in the table."""
    return [_parse_measure(word.strip()) for word in text.split(",")]


def _parse_measure(word: str) -> Measure:
    match = _MEASURE.fullmatch(word)
    aggregate = match[1] if match else word
    if match is None or aggregate not in AGGREGATES:
        raise PipelineError(
            f"{word!r} is no measure: take {', '.join(AGGREGATES)}, like sum(amount) or sum(amount) as total"
        )
    if match[2] is None and aggregate != "count":
        raise PipelineError(f"{word!r} does not name its field: write {aggregate}(FIELD)")
    path = parse_path(match[2]) if match[2] else None
    return Measure(match[3] or _default_name(aggregate, path), aggregate, path)


def _default_name(aggregate: str, path: Path | None) -> str:
    return aggregate if path is None else f"{aggregate}_{column_name(path)}"
