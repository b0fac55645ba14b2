"""``python -m bench [rows]``: measures, shows its progress, and writes docs/BENCHMARKS.md, and figures of other pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench import failures, plot, readme, report
from bench.row import AnyRow, Options
from bench.rows import ROWS
from bench.runner import Results, run_row
from bench.summary import format_figure
from bench.verdict import Spread

MINIMUM_PAIRS = 5


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, epilog=f"Rows: {', '.join(ROWS)}")
    parser.add_argument("rows", nargs="*", help="rows to measure, or prefixes of their names (all)")
    parser.add_argument("--pairs", type=int, default=MINIMUM_PAIRS, help="runs of each contender (5)")
    parser.add_argument("--scale", type=float, default=1.0, help="shorten or lengthen every load (1.0)")
    parser.add_argument(
        "--cold-gigabytes", type=float, default=5.0, help="size of the topic that the cold reader reads (5)"
    )
    parser.add_argument(
        "--stored-gigabytes", type=float, default=20.0, help="size of the data that the row 'stored' stores (20)"
    )
    parser.add_argument(
        "--backlog-gigabytes",
        type=float,
        default=1.0,
        help="size of what a replica missed in the row 'cluster-catch-up' (1)",
    )
    parser.add_argument(
        "--note", default="", help="a sentence for the text of the rows, such as what else ran on the machine"
    )
    parser.add_argument("--dry", action="store_true", help="print the figures, write nothing")
    options = parser.parse_args(arguments)
    if options.pairs < MINIMUM_PAIRS and not options.dry:
        parser.error(f"--pairs {options.pairs} is too few for a verdict: give {MINIMUM_PAIRS} or more, or --dry")
    return options


def select_rows(prefixes: Sequence[str]) -> list[AnyRow]:
    """Return the rows whose names begin with a prefix, or all rows; raises SystemExit if a prefix matches none."""
    for prefix in prefixes:
        if not any(name.startswith(prefix) for name in ROWS):
            sys.exit(f"no row's name begins with '{prefix}'; rows: {', '.join(ROWS)}")
    return [row for row in ROWS.values() if not prefixes or row.name.startswith(tuple(prefixes))]


def show_row(console: Console, row: AnyRow, results: Results) -> None:
    """Print a row's medians and the verdicts on its goals."""
    table = Table("", *results, title=row.title)
    for metric in next(iter(results.values()))[0]:
        middles = [Spread.of([sample[metric] for sample in samples]).middle for samples in results.values()]
        table.add_row(metric, *(format_figure(value) for value in middles))
    console.print(table)
    for goal in row.goals:
        spread = report.goal_spread(goal, results)
        console.print(
            f"  {report.judge_goal(goal, results)}: {goal.sentence()} (median {format_figure(spread.middle)})"
        )


def describe_conditions(scale: float, note: str) -> str:
    """Return what the text of a row says of its conditions, each sentence after a space."""
    sentences = [f"Loads scaled by {scale:g}."] if scale != 1.0 else []
    return "".join(f" {sentence}" for sentence in [*sentences, note] if sentence)


def main(arguments: Sequence[str]) -> int:
    """Measure the rows one after another; store each as soon as it is measured."""
    settings = parse_arguments(arguments)
    options = Options(
        settings.pairs, settings.scale, settings.cold_gigabytes, settings.stored_gigabytes, settings.backlog_gigabytes
    )
    console = Console()
    for row in select_rows(settings.rows):
        with console.status(row.title) as status:
            results = run_row(row, options, lambda words, row=row: status.update(f"{row.title}: {words}"))  # type: ignore[misc]
        show_row(console, row, results)
        if not settings.dry:
            report.add_result(row.name, results, describe_conditions(options.scale, settings.note))
            report.write_report()
            failures.write_page(report.load_results())
            readme.write_page(report.load_results())
            plot.draw_plot(report.load_results(), report.PLOT)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
