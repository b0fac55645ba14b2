"""What the algorithms made of all instances together. Imports no pyspark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spark_integration.queries.summary import Summary
from spark_integration.traffic.settings import ALGORITHMS
from spark_integration.traffic.simulation import Outcome

ALL = "all"
FIGURES = {
    "usable": "paid throughput that could be used, mean",
    "usable_p10": "the same, of the worst tenth of instances",
    "overshoot_p99": "most beyond the limit in 10 s, p99 of instances",
    "peak_p99": "most in 1 s, as parts of the limit, p99",
    "adapting_s_p50": "seconds until a change is followed, p50",
    "adapting_s_p90": "the same, p90",
}
"""The figures of each kind and algorithm, with their meaning."""

Table = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Figures by kind of traffic, algorithm and name."""


@dataclass(frozen=True)
class TrafficSummary(Summary):
    """The figures of a simulation, and the files that were written."""

    instances: int
    figures: Table
    files: tuple[str, ...] = ()

    def show(self) -> None:
        """Print the table for a person."""
        print("\n".join(format_table(self.figures)))
        for name in self.files:
            print(f"written: {name}")


def summarize(outcomes: Iterable[Outcome]) -> Table:
    """Return the figures of each kind of traffic, and of all kinds together."""
    groups: dict[str, dict[str, list[Outcome]]] = {}
    for outcome in outcomes:
        for kind in (outcome.kind, ALL):
            groups.setdefault(kind, {}).setdefault(outcome.algorithm, []).append(outcome)
    return {
        kind: {name: _measure(by_algorithm[name]) for name in ALGORITHMS if name in by_algorithm}
        for kind, by_algorithm in sorted(groups.items(), key=lambda item: item[0] == ALL)
    }


def _measure(outcomes: Sequence[Outcome]) -> dict[str, float]:
    usable = [outcome.usable for outcome in outcomes]
    figures = {
        "usable": sum(usable) / len(usable),
        "usable_p10": find_quantile(usable, 0.1),
        "overshoot_p99": find_quantile([outcome.overshoot for outcome in outcomes], 0.99),
        "peak_p99": find_quantile([outcome.peak for outcome in outcomes], 0.99),
    }
    times = [time for outcome in outcomes for time in outcome.adapting_s]
    if times:
        figures |= {"adapting_s_p50": find_quantile(times, 0.5), "adapting_s_p90": find_quantile(times, 0.9)}
    return {name: round(value, 4) for name, value in figures.items()}


def find_quantile(values: Sequence[float], quantile: float) -> float:
    """Return the value below which this part of the values lies."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * quantile), len(ordered) - 1)]


def format_table(figures: Table) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [
        "| traffic | algorithm | usable | worst tenth | beyond the limit in 10 s | peak in 1 s | adapts in, p50 | p90 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, by_algorithm in figures.items():
        for algorithm, values in by_algorithm.items():
            cells = [f"{values[name]:.1%}" for name in ("usable", "usable_p10", "overshoot_p99")]
            cells.append(f"{values['peak_p99']:.2f} × limit")
            cells += [
                f"{values[name]:.1f} s" if name in values else "" for name in ("adapting_s_p50", "adapting_s_p90")
            ]
            lines.append(f"| {kind} | `{algorithm}` | {' | '.join(cells)} |")
    return lines
