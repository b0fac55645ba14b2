"""The figures of chaos runs: docs/chaos.json, and the table of it in docs/RELIABILITY.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from compat_tests.brokers import ROOT
from compat_tests.chaos.plan import SCENARIOS
from compat_tests.pages import render_table, replace_section

RESULTS = ROOT / "docs" / "chaos.json"
PAGE = ROOT / "docs" / "RELIABILITY.md"
BEGIN, END = "<!-- chaos: made by compat_tests/chaos/report.py -->\n", "<!-- end of chaos -->"
BROKERS = {"kafkacompat": "this broker", "kafka": "Apache Kafka 4.3.1"}
NOTHING = "–"


@dataclass
class ChaosFigures:
    """The figures of a run, as `docs/chaos.json` has them."""

    scenario: str
    broker: str
    seed: int
    seconds: float
    network: str
    """"namespaces" or "loopback"."""
    operations: int = 0
    acknowledged: int = 0
    indeterminate: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    left_out: Sequence[str] = ()
    """Kinds of faults of the scenario that were not possible."""
    findings: Mapping[str, int] = field(default_factory=dict)
    problems: Sequence[str] = ()
    """Brokers that ended by themselves, replicas that did not recover, clients that failed, work that never succeeded."""
    longest_gaps_s: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the figures as JSON's types."""
        return asdict(self)


def add_run(path: Path, figures: ChaosFigures) -> None:
    """Add a run to a file of results, in the place of an earlier run of the scenario on that broker.

    Runs of scenarios that no longer exist are left out.
    """
    runs = {(run.scenario, run.broker): run for run in [*read_runs(path), figures] if run.scenario in SCENARIOS}
    order = list(SCENARIOS)
    ordered = sorted(runs.values(), key=lambda run: (order.index(run.scenario), list(BROKERS).index(run.broker)))
    path.write_text(json.dumps({"runs": [run.to_json() for run in ordered]}, indent=1) + "\n")


def read_runs(path: Path) -> list[ChaosFigures]:
    """Read a file of results, which may be missing."""
    if not path.exists():
        return []
    return [ChaosFigures(**run) for run in json.loads(path.read_text())["runs"]]


def render_runs(runs: Sequence[ChaosFigures]) -> str:
    """Render a row for each run, in Markdown."""
    head = (
        "scenario", "broker", "seconds", "faults", "operations", "indeterminate", "findings",
        "longest gap of writers, readers, groups",
    )  # fmt: skip
    return render_table(head, list(map(_render_run, runs)))


def _render_run(run: ChaosFigures) -> tuple[str, ...]:
    gaps = ", ".join(f"{run.longest_gaps_s[clients]:.1f} s" for clients in ("writers", "readers", "groups"))
    return (
        run.scenario,
        BROKERS[run.broker],
        f"{run.seconds:g}",
        _render_counts(run.faults),
        f"{run.operations:,}",
        f"{run.indeterminate:,}",
        "; ".join([*([_render_counts(run.findings)] if run.findings else []), *run.problems]) or "0",
        gaps,
    )


def _render_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} × {name}" for name, count in counts.items()) or NOTHING


def replace_table(page: str, runs: Sequence[ChaosFigures]) -> str:
    """Return a page with the table of the runs between its markers; raises ValueError without them."""
    return replace_section(page, BEGIN, END, render_runs(runs))


def write_page() -> None:
    """Write the table of docs/chaos.json into docs/RELIABILITY.md."""
    PAGE.write_text(replace_table(PAGE.read_text(), read_runs(RESULTS)))


if __name__ == "__main__":
    write_page()
