"""Fields of a JSON value by their paths: ``amount``, ``user.id`` or ``$.user.id``. Imports no pyspark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from spark_integration.errors import PipelineError

Path = tuple[str, ...]


def parse_path(text: str) -> Path:
    """Split a path into names; raises PipelineError."""
    names = tuple(text.strip().removeprefix("$.").split("."))
    if not all(re.fullmatch(r"[^\s\[\]$*][^\[\]$*]*", name) for name in names):
        raise PipelineError(f"{text!r} is no path: write names with dots between them, like user.id")
    return names


def column_name(path: Path) -> str:
    """Return a name for the path that every table format accepts."""
    return re.sub(r"\W", "_", "_".join(path))


def check_paths(paths: Iterable[Path]) -> None:
    """Raise PipelineError if one path is a value, and another one leads to a field within it."""
    wanted = sorted(set(paths))
    for path, longer in product(wanted, wanted):
        if path != longer and path == longer[: len(path)]:
            raise PipelineError(f"{'.'.join(path)} is used as a value, and {'.'.join(longer)} within it: give one")
