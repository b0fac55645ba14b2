"""Turning generated source code into a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def compile_function(source: Sequence[str], function: str, names: dict[str, Any], where: str) -> Any:
    """Return *function*, which the lines of *source* define over the global *names*; tracebacks show *where* as its file."""
    exec(compile("\n".join(source) + "\n", where, "exec"), names)
    return names[function]
