"""Plots of an audit's report, as SVG that takes its colours from the page around it."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import groupby
from typing import Any

from spark_integration.audit.findings import Row
from spark_integration.audit.formatting import record_time
from spark_integration.audit.settings import PERCENTILES
from spark_integration.audit.summary import AuditSummary
from spark_integration.audit.windows import OTHERS

# Stands for the colour of the page's text, which an SVG in a page calls currentColor.
TEXT = "#010203"
COLOURS = ("#2f7ed8", "#e8833a", "#2ca58d", "#b455c8", "#d64550", "#8a8d93")
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "audit",
    "font.family": "sans-serif",
    "font.size": 9,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color"), TEXT
    ),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": None,
    # Names may contain dollar signs, and are no formulas.
    "text.parse_math": False,
}
# The metadata's vocabularies have addresses of their own, and the report names no other address.
NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
PLOTS_SHOWN = 20
NAME_LENGTH = 30


def draw_plots(summary: AuditSummary) -> list[tuple[str, str]]:
    """Return the heading and the SVG of each plot; topics after the first twenty have none."""
    rates = [
        (f"Records by {_describe_width(summary.window_ms)}: {name}", _draw_svg(_rate_lines(rows, summary.window_ms)))
        for name, rows in _group_by_topic(summary.windows)
    ]
    latencies = [
        (
            f"{stage.replace('-', ' → ')}, by {_describe_width(summary.window_ms)}: {name}",
            _draw_svg(_percentile_lines(list(stage_rows))),
        )
        for name, rows in _group_by_topic(summary.latency_windows)
        for stage, stage_rows in groupby(rows, key=lambda row: str(row["stage"]))
    ]
    return rates + latencies


def _group_by_topic(rows: Iterable[Row]) -> list[tuple[str, list[Row]]]:
    shown = (row for row in rows if record_time(row["start_ms"]))
    groups = groupby(shown, key=lambda row: f"{row['topic']} ({row['place']})")
    return [(name, list(topic_rows)) for name, topic_rows in groups][:PLOTS_SHOWN]


Lines = Mapping[str, tuple[Sequence[datetime], Sequence[float]]]


def _rate_lines(rows: Sequence[Row], width_ms: int) -> tuple[Lines, str]:
    """Return a line for each producer; a window without its records is a zero, not a slope."""
    starts = [row["start_ms"] for row in rows]
    every = range(min(starts), max(starts) + width_ms, width_ms)
    lines = {}
    for producer in dict.fromkeys(row["producer"] for row in rows):
        records_by_start = {row["start_ms"]: row["records"] for row in rows if row["producer"] == producer}
        name = "all" if producer == OTHERS and len({row["producer"] for row in rows}) == 1 else producer
        lines[str(name)] = ([_utc_time(start) for start in every], [records_by_start.get(start, 0) for start in every])
    return lines, "records"


def _percentile_lines(rows: Sequence[Row]) -> tuple[Lines, str]:
    times = [_utc_time(row["start_ms"]) for row in rows]
    return {name: (times, [row[name] for row in rows]) for name in PERCENTILES}, "ms"


def _draw_svg(plot: tuple[Lines, str]) -> str:
    import matplotlib
    from cycler import cycler
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure

    lines, unit = plot
    style = {**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        # The page's fonts have the letters that matplotlib's own lacks.
        warnings.filterwarnings("ignore", "Glyph")
        figure: Any = Figure(figsize=(9, 2.4), layout="constrained")
        axes = figure.subplots()
        for times, values in lines.values():
            axes.plot(times, values, linewidth=1.3, marker="o" if len(times) < 40 else None, markersize=2.5)
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0 if min(min(values) for _, values in lines.values()) >= 0 else None)
        axes.grid(alpha=0.2, color=TEXT)
        locator = AutoDateLocator(tz=timezone.utc)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=timezone.utc))
        legend = axes.legend(axes.lines, [""] * len(lines), frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        # In the call itself, names that begin with _ would be left out.
        for text, name in zip(legend.get_texts(), lines, strict=True):
            text.set_text(_shorten_name(name))
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata=NO_METADATA)
    svg = out.getvalue()
    return svg[svg.index("<svg") :].replace(TEXT, "currentColor")


def _shorten_name(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= NAME_LENGTH else f"{line[:NAME_LENGTH]}…"


def _utc_time(timestamp_ms: int) -> datetime:
    return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)


def _describe_width(width_ms: int) -> str:
    units = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000))
    name, unit_ms = next((name, unit_ms) for name, unit_ms in units if width_ms % unit_ms == 0)
    count = width_ms // unit_ms
    return name if count == 1 else f"{count} {name}s"
