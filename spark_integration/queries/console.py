"""The console of standard error. Imports no pyspark."""

from __future__ import annotations

from rich.console import Console


def error_console() -> Console:
    """Return a console on standard error that prints texts as they are: standard output carries results alone."""
    return Console(stderr=True, highlight=False, markup=False)


def say(line: str) -> None:
    """Print a line on standard error, which the terminal wraps and not we."""
    error_console().print(line, soft_wrap=True)
