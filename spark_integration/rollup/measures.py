"""What a rollup measures: a small table of aggregates that take any number of events in any order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as sql

from spark_integration.casts import try_cast
from spark_integration.errors import PipelineError
from spark_integration.rollup.paths import Path, column_name, path_of

MAX_DOUBLE = 1.7976931348623157e308


class Function(NamedTuple):
    """An aggregate, and whether it takes numbers; one that does not takes any value, as text."""

    aggregate: Callable[[Column], Column]
    of_numbers: bool


FUNCTIONS: Mapping[str, Function] = {
    "count": Function(sql.count, False),
    "sum": Function(sql.sum, True),
    "min": Function(sql.min, True),
    "max": Function(sql.max, True),
    "avg": Function(sql.avg, True),
    "approx_distinct": Function(sql.approx_count_distinct, False),
}
_MEASURE = re.compile(r"(\w+)\s*(?:\(\s*([^()]+?)\s*\))?(?:\s+as\s+(\w+))?")


class Measure(NamedTuple):
    """One column of the result; without a path it counts events."""

    name: str
    function: str
    path: Path | None

    def column(self, value: Callable[[Path], Column]) -> Column:
        """Return the aggregate over what *value* finds at the path."""
        function = FUNCTIONS[self.function]
        if self.path is None:
            return sql.count("*").alias(self.name)
        found = number(value(self.path)) if function.of_numbers else value(self.path)
        return function.aggregate(found).alias(self.name)


def number(text: Column) -> Column:
    """Read a number; null where there is none, and for those that are not finite, of which one would spoil a sum."""
    read = try_cast(text, "double")
    return sql.when(read.between(-MAX_DOUBLE, MAX_DOUBLE), read)


def measures_of(text: str) -> list[Measure]:
    """Read ``sum(amount),count,max(a.b) as highest``; raises PipelineError for what the table does not have."""
    return [_measure(word.strip()) for word in text.split(",")]


def _measure(word: str) -> Measure:
    found = _MEASURE.fullmatch(word)
    function = found[1] if found else word
    if found is None or function not in FUNCTIONS:
        raise PipelineError(
            f"{word!r} is no measure: take {', '.join(FUNCTIONS)}, like sum(amount) or sum(amount) as total"
        )
    if found[2] is None and function != "count":
        raise PipelineError(f"{word!r} does not say of what: write {function}(FIELD)")
    path = path_of(found[2]) if found[2] else None
    return Measure(found[3] or _default_name(function, path), function, path)


def _default_name(function: str, path: Path | None) -> str:
    return function if path is None else f"{function}_{column_name(path)}"
