"""Draws each row's throughput and CPU ratio to Kafka, with quartiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.row import KAFKA
from bench.rows import ROWS
from bench.verdict import Spread, ratios

PANELS = (
    ("records/s", "throughput, times Kafka's (more is better)"),
    ("broker CPU s per million records", "CPU time, times Kafka's (less is better)"),
)


def bars(stored: Mapping[str, Any], metric: str) -> list[tuple[str, Spread]]:
    """Return a label and the ratios' spread for each row and contender that has the metric."""
    found = []
    for row in ROWS.values():
        results: Mapping[str, Sequence[Mapping[str, float]]] = stored.get(row.name, {}).get("results", {})
        for contender, samples in results.items() if KAFKA in results else ():
            if contender != KAFKA and metric in samples[0] and not row.name.startswith("latency"):
                theirs = [sample[metric] for sample in results[KAFKA]]
                label = row.title + contender.removeprefix("kafkacompat")
                found.append((label, Spread.of(ratios([sample[metric] for sample in samples], theirs))))
    return found


def draw(stored: Mapping[str, Any], path: Path) -> None:
    """Write the plot as SVG."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "kafkacompat"
    from matplotlib import pyplot

    panels, axes = pyplot.subplots(1, 2, figsize=(13, 5), sharey=True)
    for (metric, title), axis in zip(PANELS, axes, strict=True):
        _draw_panel(axis, bars(stored, metric), title)
    axes[0].invert_yaxis()
    panels.tight_layout()
    panels.savefig(path, metadata={"Date": None})
    pyplot.close(panels)


def _draw_panel(axis: Any, rows: list[tuple[str, Spread]], title: str) -> None:
    middles = [spread.middle for _, spread in rows]
    errors = [[spread.middle - spread.low for _, spread in rows], [spread.high - spread.middle for _, spread in rows]]
    axis.barh([label for label, _ in rows], middles, xerr=errors, color="#3b75af", ecolor="#444444", capsize=3)
    axis.axvline(1.0, color="#b03a2e", linewidth=1)
    axis.set_title(title)
    axis.grid(axis="x", alpha=0.3)
