"""What the command prints."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.simulation.faults import FAULTS
from tests.simulation.work import WORK

if TYPE_CHECKING:
    from tests.simulation.run import Outcome
    from tests.simulation.runs import Tally


def print_outcome(outcome: Outcome, options: str) -> None:
    """Print the outcome of one seed."""
    print(
        f"seed {outcome.seed}: {outcome.virtual_s:.0f} s simulated in {outcome.cpu_s:.1f} s of CPU time,"
        f" {outcome.calls} calls, trace {outcome.trace:08x}"
    )
    _print_counts(outcome.happened, outcome.skipped)
    _print_findings(outcome, options)


def print_tally(tally: Tally, options: str) -> None:
    """Print what all seeds came to."""
    _print_counts(tally.happened, tally.skipped)
    for outcome in tally.failed:
        _print_findings(outcome, options)
    print(
        f"{tally.runs} seeds, {len(tally.failed)} failed: {tally.virtual_s / 3600:.1f} h simulated in {tally.elapsed_s:.0f} s,"
        f" {tally.cpu_s / max(1, tally.runs):.2f} s of CPU time a seed"
    )


def _print_findings(outcome: Outcome, options: str) -> None:
    if not outcome.findings:
        return
    print(f"seed {outcome.seed} failed:")
    for finding in outcome.findings:
        print(f"  {finding}")
    print(f"  Repeat it: python -m tests.simulation --seed {outcome.seed}{options}")


def _print_counts(happened: Counter[str], skipped: Counter[str]) -> None:
    kinds = {"faults": list(FAULTS), "work": list(WORK)}
    kinds["also"] = sorted(set(happened) - set(FAULTS) - set(WORK))
    for title, names in kinds.items():
        counts = (f"{name} {happened[name]}" + (f" (+{skipped[name]})" if skipped[name] else "") for name in names)
        print(f"{title}: {', '.join(counts)}")
    if skipped:
        print("(+n): did not apply when its time came")
