"""Plots as data for a template that writes SVG: lines over the last ten minutes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import NamedTuple

from kafkacompat.web.figures import format_bytes, format_number
from kafkacompat.web.throughput import STEP_S, Rates

WIDTH, HEIGHT = 600, 150
GRID_LINES = 3
MIN_POINTS = 25
"""A plot shows the time of this many points at least, as long as there are fewer."""


class Line(NamedTuple):
    """One line: ``label`` names its class, too; ``points`` and ``area`` are in the units of the plot."""

    label: str
    latest: str
    points: str
    area: str


class Plot(NamedTuple):
    """A plot: its lines, and the heights of the grid with their labels."""

    title: str
    lines: list[Line]
    grid: list[tuple[float, str]]
    span: str
    width: int = WIDTH
    height: int = HEIGHT


def make_plots(history: Sequence[Rates]) -> list[Plot]:
    """Return the plots of bytes and records per second."""
    return [
        _make_plot(
            "Bytes per second",
            {
                "in": [rates.bytes_in for rates in history],
                "out": [rates.bytes_out for rates in history],
            },
            lambda value: f"{format_bytes(value)}/s",
        ),
        _make_plot(
            "Records per second",
            {"in": [rates.records_in for rates in history]},
            lambda value: f"{format_number(value)}/s",
        ),
    ]


def _make_plot(title: str, values: dict[str, list[float]], show: Callable[[float], str]) -> Plot:
    top = find_top(max(max(line, default=0.0) for line in values.values()))
    lines = []
    for label, line in values.items():
        points = [(x, HEIGHT - HEIGHT * value / top) for x, value in zip(_place(len(line)), line, strict=True)]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        area = f"{points[0][0]:.1f},{HEIGHT} {joined} {points[-1][0]:.1f},{HEIGHT}" if points else ""
        lines.append(Line(label, show(line[-1]) if line else "–", joined, area))
    grid = [(HEIGHT * number / GRID_LINES, show(top - top * number / GRID_LINES)) for number in range(GRID_LINES)]
    count = max(len(line) for line in values.values())
    return Plot(title, lines, grid, _format_span((max(count, MIN_POINTS) - 1) * STEP_S))


def _place(count: int) -> list[float]:
    """Return where points lie, so that the latest one is on the right."""
    steps = max(count, MIN_POINTS) - 1
    return [WIDTH * (steps + 1 - count + number) / steps for number in range(count)]


def _format_span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min ago" if seconds >= 120 else f"{seconds:.0f} s ago"


def find_top(largest: float) -> float:
    """Return the value at the top of a plot: a round number for each line of the grid, together at least *largest*."""
    step = 1.0
    for factor in cycle((2, 2.5, 2)):
        if step * GRID_LINES >= largest:
            break
        step *= factor
    return step * GRID_LINES
