"""``python -m compat_tests.tenants``: let a noisy neighbour loose beside nine quiet instances on one node, and measure these.

Each attack has a quiet phase, the attack, and a quiet phase after it. The figures go to docs/tenants.json and docs/TENANTS.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from compat_tests.tenants import report
from compat_tests.tenants.attacks import ATTACKS
from compat_tests.tenants.pacing import PaceError
from compat_tests.tenants.run import PHASES, RATE, Extent, Outcome, run_attacks
from spark_integration.runtime.maven import BUILD


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.tenants", description=__doc__)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"attacks to run (all): {', '.join(ATTACKS)}")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each of an attack's three phases (8)")
    parser.add_argument("--scale", type=float, default=1.0, help="scale of the numbers of connections and groups (1.0)")
    parser.add_argument("--rate", type=float, default=RATE, help=f"records a second of each quiet client ({RATE:g})")
    parser.add_argument("--dry", action="store_true", help="print the figures, write nothing")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.attacks if name not in ATTACKS]
    if unknown:
        parser.error(f"there is no attack {unknown[0]}: give one of {', '.join(ATTACKS)}")
    for option in ("seconds", "scale", "rate"):
        if getattr(chosen, option) <= 0:
            parser.error(f"--{option} {getattr(chosen, option):g} is not positive")
    return chosen


def show_outcome(console: Console, outcome: Outcome) -> None:
    """Print the percentiles of one attack by phase, and the attack's own figures."""
    table = Table("quiet instances, ms", *PHASES, "ratio", title=f"The noisy instance {outcome.title}")
    for name in outcome.latencies_ms["before"]:
        values = (f"{outcome.latencies_ms[phase][name]:.2f}" for phase in PHASES)
        table.add_row(name, *values, f"{outcome.ratio(name):.2f}")
    table.add_row("broker CPU, cores", *(f"{outcome.cpu_share[phase]:.2f}" for phase in PHASES), "")
    table.add_row("broker MB", *(f"{outcome.resident_mb[phase]:.0f}" for phase in PHASES), "")
    console.print(table)
    noise = report.format_noise(outcome.noise)
    held = "held" if outcome.is_bounded else "[red]did not hold[/]"
    console.print(f"  {noise}; the limit {held}; {outcome.unanswered} of {outcome.records} quiet records unanswered")


def main(arguments: Sequence[str]) -> int:
    """Run the attacks one after another; return 1 if a quiet client failed or a limit did not hold. Times decide nothing."""
    chosen = parse_arguments(arguments)
    names = chosen.attacks or list(ATTACKS)
    console = Console(highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    outcomes: list[Outcome] = []
    folder = make_folder()
    try:
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("starting the broker")
            runs = run_attacks(
                names,
                folder,
                Extent(chosen.seconds, chosen.scale, chosen.rate),
                lambda words: progress.update(task, description=f"{names[len(outcomes)]}: {words}"),
            )
            for outcome in runs:
                outcomes.append(outcome)
                show_outcome(progress.console, outcome)
    except PaceError as problem:
        console.print(f"[red]{problem}[/]")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not chosen.dry:
        extent = {
            "seconds of a phase": chosen.seconds,
            "records a second of a client": chosen.rate,
            "scale": chosen.scale,
        }
        report.store_outcomes(outcomes, {**describe_conditions(), **extent})
        report.draw_plot(report.load_results())
        report.write_page()
    return 0 if all(outcome.is_bounded and not outcome.unanswered for outcome in outcomes) else 1


def describe_conditions() -> dict[str, str]:
    """Return the date, the machine's cores and the version of Python."""
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return {"date": f"{today}", "cores": f"{os.cpu_count()}", "Python": platform.python_version()}


def make_folder() -> Path:
    """Return a folder on the disk of the build: a file system in memory would hide the cost of writing."""
    parent = BUILD / "tenants"
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=parent))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
