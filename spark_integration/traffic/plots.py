"""Plots of a simulation, as one PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spark_integration.traffic.demand import Demand
from spark_integration.traffic.settings import ALGORITHMS
from spark_integration.traffic.simulation import OVERSHOOT_S, Outcome

COLOURS = {"article": "#e8833a", "shared": "#2f7ed8", "static": "#8a8d93"}
STYLE = {"font.family": "sans-serif", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


def draw_plots(outcomes: Sequence[Outcome], example: Demand, examples: Mapping[str, Outcome], path: Path) -> None:
    """Draw how much of the paid throughput instances use, how far they exceed it, and one instance second by second."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure: Any = Figure(figsize=(10, 6.5), layout="constrained", dpi=110)
        places = figure.subplot_mosaic([["usable", "overshoot"], ["example", "example"]])
        _draw_distribution(
            places["usable"], outcomes, lambda outcome: 100 * outcome.usable, "% of the paid throughput that was used"
        )
        _draw_distribution(
            places["overshoot"],
            outcomes,
            lambda outcome: 100 * outcome.overshoot,
            f"% beyond the limit in the worst {OVERSHOOT_S} s",
        )
        _draw_example(places["example"], example, examples)
        figure.savefig(path, metadata={"Software": None})


def _draw_distribution(axes: Any, outcomes: Sequence[Outcome], measure: Any, label: str) -> None:
    for algorithm in ALGORITHMS:
        values = sorted(measure(outcome) for outcome in outcomes if outcome.algorithm == algorithm)
        if values:
            parts = [100 * (index + 1) / len(values) for index in range(len(values))]
            axes.plot(values, parts, color=COLOURS[algorithm], label=algorithm, linewidth=1.5)
    axes.set_xlabel(label)
    axes.set_ylabel("% of instances, up to")
    axes.grid(alpha=0.2)
    axes.legend(frameon=False)


def _draw_example(axes: Any, demand: Demand, outcomes: Mapping[str, Outcome]) -> None:
    seconds = range(len(demand.bytes))
    axes.plot(
        seconds, [sum(row) / demand.limit for row in demand.bytes], color="#b8b8b8", label="demanded", linewidth=1
    )
    for algorithm, outcome in outcomes.items():
        axes.plot(seconds, outcome.used_by_second, color=COLOURS[algorithm], label=algorithm, linewidth=1.3)
    for move in demand.moves:
        axes.axvline(move, color="#000000", alpha=0.15, linewidth=0.8)
    axes.axhline(1, color="#d64550", linewidth=0.8, linestyle="--", label="limit")
    axes.set_xlabel(f"second of {demand.instance} ({demand.kind}); vertical lines: the traffic moves")
    axes.set_ylabel("used, as parts of the limit")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.2)
    axes.legend(frameon=False, ncols=5)
