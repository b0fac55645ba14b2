"""``python -m compat_tests.matrix [rows]``: runs real clients, and writes docs/COMPATIBILITY.md."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape

from compat_tests.clusters import NODES
from compat_tests.matrix import report
from compat_tests.matrix.cluster_stage import ClusterStage
from compat_tests.matrix.instance_stage import running_instance_stages
from compat_tests.matrix.programme import FAILED, NOT_APPLICABLE, NOT_SERVED
from compat_tests.matrix.rows import ROWS, Row
from compat_tests.matrix.run import AnyStage, run_folder, run_row, start_stages


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="matrix", description=__doc__, epilog=f"Rows: {', '.join(ROWS)}")
    parser.add_argument("rows", nargs="*", help="rows to run, or how their names begin (all)")
    parser.add_argument("--dry", action="store_true", help="tell the outcome, write nothing")
    parser.add_argument(
        "--brokers",
        type=int,
        choices=(1, len(NODES)),
        default=1,
        help="1: a single node beside Kafka's (1); 3: a cluster of ours, where topics get three replicas, and nothing is written",
    )
    parser.add_argument(
        "--instances",
        action="store_true",
        help="run each row in two instances of one node, with the same names of topics and groups, and write nothing",
    )
    chosen = parser.parse_args(arguments)
    if chosen.instances and chosen.brokers != 1:
        parser.error("--instances runs on a single node: leave --brokers out")
    return chosen


@contextmanager
def running_stages(brokers: int, in_instances: bool) -> Iterator[Sequence[AnyStage]]:
    """Start what the rows run on."""
    if in_instances:
        with run_folder() as folder, running_instance_stages(folder) as instances:
            yield instances
    elif brokers == 1:
        with start_stages() as single_nodes:
            yield single_nodes
    else:
        with run_folder() as folder, ClusterStage(folder) as cluster:
            yield [cluster]


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
    writes = not settings.dry and settings.brokers == 1 and not settings.instances
    console = Console(highlight=False)
    with running_stages(settings.brokers, settings.instances) as on, console.status("starting") as status:
        for number, row in enumerate(rows, start=1):
            begun = time.monotonic()
            where = f"{number} of {len(rows)}: {row.title}"
            result = run_row(row, on, lambda words, where=where: status.update(f"{where}: {words}"))  # type: ignore[misc]
            show_result(console, result, time.monotonic() - begun)
            if writes:
                report.store_results({**report.load_results(), row.name: result}, list(ROWS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
