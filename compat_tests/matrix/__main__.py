"""``python -m compat_tests.matrix [rows]``: runs real clients, and writes docs/COMPATIBILITY.md."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from compat_tests.matrix import report
from compat_tests.matrix.programme import FAILED, NOT_APPLICABLE, NOT_SERVED
from compat_tests.matrix.rows import ROWS, Row
from compat_tests.matrix.run import run_row, start_stages


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="matrix", description=__doc__, epilog=f"Rows: {', '.join(ROWS)}")
    parser.add_argument("rows", nargs="*", help="rows to run, or how their names begin (all)")
    parser.add_argument("--dry", action="store_true", help="tell the outcome, write nothing")
    return parser.parse_args(arguments)


def select_rows(prefixes: Sequence[str]) -> list[Row]:
    """Return the rows whose names begin so, all without prefixes; SystemExit for one that fits none."""
    for prefix in prefixes:
        if not any(name.startswith(prefix) for name in ROWS):
            sys.exit(f"no row begins with '{prefix}'; rows: {', '.join(ROWS)}")
    return [row for row in ROWS.values() if not prefixes or row.name.startswith(tuple(prefixes))]


def show_result(console: Console, result: Mapping[str, Any], seconds: float) -> None:
    """Print a row's outcome: the failures on each broker, with their reasons."""
    console.print(f"[bold]{escape(result['title'])}[/]  {seconds:.0f} s")
    if "not_installed" in result:
        console.print(f"  not tried: {escape(result['not_installed'])}")
    for kind, broker in result.get("brokers", {}).items():
        tried = [outcome for outcome, _ in broker["cells"].values() if outcome not in (NOT_APPLICABLE, NOT_SERVED)]
        good = len(tried) - tried.count(FAILED)
        console.print(f"  {kind}: {good} of {len(tried)} ok  {escape(broker['wire'])}")
        for step, (outcome, why) in broker["cells"].items():
            if outcome == FAILED:
                console.print(f"    [red]{step}[/]: {escape(why)}")


def main(arguments: Sequence[str]) -> int:
    """Run the rows one after another; each is stored as soon as it is done."""
    settings = parse_arguments(arguments)
    rows = select_rows(settings.rows)
    console = Console(highlight=False)
    with start_stages() as on, console.status("starting") as status:
        for number, row in enumerate(rows, start=1):
            begun = time.monotonic()
            where = f"{number} of {len(rows)}: {row.title}"
            result = run_row(row, on, lambda words, where=where: status.update(f"{where}: {words}"))  # type: ignore[misc]
            show_result(console, result, time.monotonic() - begun)
            if not settings.dry:
                report.store_results({**report.load_results(), row.name: result}, list(ROWS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
