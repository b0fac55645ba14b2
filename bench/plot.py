"""Draws each row's throughput and CPU ratio to Kafka, with quartiles, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.row import KAFKA
from bench.rows import ROWS
from bench.verdict import Spread, compute_ratios

PANELS = (
    ("records/s", "throughput, times Kafka's (more is better)"),
    ("broker CPU s per million records", "CPU time, times Kafka's (less is better)"),
)

TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)


def collect_bars(stored: Mapping[str, Any], metric: str) -> list[tuple[str, Spread]]:
    """Return a label and the spread of the ratios for each row and contender with the metric."""
    spreads = []
    for row in ROWS.values():
        results: Mapping[str, Sequence[Mapping[str, float]]] = stored.get(row.name, {}).get("results", {})
        for contender, samples in results.items() if KAFKA in results else ():
            if contender != KAFKA and metric in samples[0] and not row.name.startswith("latency"):
                theirs = [sample[metric] for sample in results[KAFKA]]
                label = row.title + contender.removeprefix("kafkacompat")
                spreads.append((label, Spread.of(compute_ratios([sample[metric] for sample in samples], theirs))))
    return spreads


def draw_plot(stored: Mapping[str, Any], path: Path) -> None:
    """Write the plot as SVG."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "kafkacompat"
    from matplotlib import pyplot

    panels, axes = pyplot.subplots(1, 2, figsize=(13, 7), sharey=True)
    for (metric, title), axis in zip(PANELS, axes, strict=True):
        _draw_panel(axis, collect_bars(stored, metric), title)
    axes[0].invert_yaxis()
    panels.tight_layout()
    panels.savefig(path, metadata={"Date": None})
    pyplot.close(panels)


def _draw_panel(axis: Any, rows: list[tuple[str, Spread]], title: str) -> None:
    """Draw a point with its quartiles for each row; a logarithmic axis has no zero at which bars could start."""
    middles = [spread.middle for _, spread in rows]
    errors = [[spread.middle - spread.low for _, spread in rows], [spread.high - spread.middle for _, spread in rows]]
    axis.errorbar(
        middles, [label for label, _ in rows], xerr=errors, fmt="o", color="#3b75af", ecolor="#444444", capsize=3
    )
    axis.set_xscale("log")
    ticks = [tick for tick in TICKS if low_end(rows) <= tick <= high_end(rows)]
    axis.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks], minor=False)
    axis.set_xticks([], minor=True)
    axis.axvline(1.0, color="#b03a2e", linewidth=1)
    axis.set_title(title)
    axis.grid(axis="both", alpha=0.3)


def low_end(rows: list[tuple[str, Spread]]) -> float:
    """Return the tick at or below the lowest quartile of all rows, and below 1."""
    lowest = min([0.5, *(spread.low for _, spread in rows)])
    return max((tick for tick in TICKS if tick <= lowest), default=TICKS[0])


def high_end(rows: list[tuple[str, Spread]]) -> float:
    """Return the tick at or above the highest quartile of all rows, and above 1."""
    highest = max([2.0, *(spread.high for _, spread in rows)])
    return min((tick for tick in TICKS if tick >= highest), default=TICKS[-1])
