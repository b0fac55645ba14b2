"""Runs many seeds in several processes, and counts what happened."""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.simulation.drawing import draw_plan
from tests.simulation.run import Outcome, run_plan

FINDING_SHOWN = 500
"""Characters of a finding that are shown while other seeds run."""
SEEDS_A_PROCESS = 50
"""Seeds after which a process makes room for a new one, as it collects no garbage while it runs a seed."""


@dataclass
class Tally:
    """All outcomes, added up. ``failed`` are those with findings."""

    runs: int = 0
    failed: list[Outcome] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    virtual_s: float = 0.0
    cpu_s: float = 0.0
    elapsed_s: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Add an outcome."""
        self.runs += 1
        self.happened += outcome.happened
        self.skipped += outcome.skipped
        self.virtual_s += outcome.virtual_s
        self.cpu_s += outcome.cpu_s
        if outcome.findings:
            self.failed.append(outcome)


def run_seed(seed: int, plant: str | None = None, load_share: float = 1.0) -> Outcome:
    """Run the plan of a seed."""
    return run_plan(draw_plan(seed, load_share), plant)


def run_seeds(
    seeds: Sequence[int], plant: str | None, processes: int, load_share: float, *, until_found: bool = False
) -> Tally:
    """Run seeds in several processes, with a progress bar on standard error; a failure is printed at once."""
    tally = Tally()
    began_s = time.monotonic()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with (
        multiprocessing.get_context("spawn").Pool(processes, _be_quiet, maxtasksperchild=SEEDS_A_PROCESS) as pool,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        task = progress.add_task("seeds", total=len(seeds))
        for outcome in pool.imap_unordered(partial(run_seed, plant=plant, load_share=load_share), seeds):
            tally.add(outcome)
            if outcome.findings:
                progress.console.print(f"seed {outcome.seed}: {outcome.findings[0][:FINDING_SHOWN]}", markup=False)
            progress.update(task, advance=1, description=f"seeds, {len(tally.failed)} failed")
            if until_found and tally.failed:
                break
        pool.terminate()
    tally.failed.sort(key=lambda outcome: outcome.seed)
    tally.elapsed_s = time.monotonic() - began_s
    return tally


def _be_quiet() -> None:
    logging.disable(logging.CRITICAL)
