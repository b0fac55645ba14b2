"""The figures of ``make tenants`` in docs/tenants.json, the plot, and the table in docs/TENANTS.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from compat_tests.pages import render_table, replace_section
from compat_tests.tenants.run import PHASES, Outcome

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
RESULTS = DOCS / "tenants.json"
PAGE = DOCS / "TENANTS.md"
PLOT = DOCS / "tenants-neighbour.png"
BEGIN, END = (
    "<!-- neighbour: made by compat_tests/tenants/report.py -->\n",
    "<!-- neighbour: end -->\n",
)
GOAL = 2.0
HEAD = (
    "the noisy instance",
    "quiet produce p99 before, during, after (ms)",
    "ratio",
    "quiet fetch p99 before, during, after (ms)",
    "ratio",
    "broker CPU (cores)",
    "what the noisy instance got",
)


def store_outcomes(outcomes: Sequence[Outcome], conditions: Mapping[str, Any], path: Path = RESULTS) -> None:
    """Store the outcomes, each in place of the stored one of the same attack."""
    stored = load_results(path)
    attacks = {**stored.get("attacks", {}), **{outcome.name: asdict(outcome) for outcome in outcomes}}
    path.write_text(json.dumps({"conditions": dict(conditions), "attacks": attacks}, indent=1) + "\n")


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return the stored results, which are {} before the first run."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


def write_page(page: Path = PAGE, results: Path = RESULTS) -> None:
    """Write the table of the stored results into the page; raises ValueError if the page has no markers."""
    text = replace_section(page.read_text(), BEGIN, END, render_results(load_results(results)))
    page.write_text(text)


def render_results(results: Mapping[str, Any]) -> str:
    """Render the stored results as a table."""
    if not results:
        return "`make tenants` has not been run yet.\n"
    rows = [render_row(Outcome(**stored)) for stored in results["attacks"].values()]
    conditions = "; ".join(f"{name} {value}" for name, value in results["conditions"].items())
    return f"{render_table(HEAD, rows)}\n{conditions}.\n\n![Latency of the quiet instances, attack by attack]({PLOT.name})\n"


def render_row(outcome: Outcome) -> tuple[str, ...]:
    """Render one attack; a ratio beyond the goal is bold."""
    kinds = []
    for percentile in ("produce p99", "fetch p99"):
        latencies = (f"{outcome.latencies_ms[phase][percentile]:.1f}" for phase in PHASES)
        ratio = outcome.ratio(percentile)
        kinds += [", ".join(latencies), f"{ratio:.2f}" if ratio <= GOAL else f"**{ratio:.2f}**"]
    shares = ", ".join(f"{outcome.cpu_share[phase]:.2f}" for phase in PHASES)
    return outcome.title, *kinds, shares, format_noise(outcome.noise)


def format_noise(noise: Mapping[str, float]) -> str:
    """Return what the noisy instance did, for people."""
    return ", ".join(
        f"{name} {value:,.0f}" if value >= 1000 else f"{name} {value:.4g}" for name, value in noise.items()
    )


def draw_plot(results: Mapping[str, Any], path: Path = PLOT) -> None:
    """Draw the quiet instances' latency over time, a panel for each attack, on a logarithmic axis."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    attacks = [Outcome(**stored) for stored in results["attacks"].values()]
    figure, axes = pyplot.subplots(len(attacks), 1, figsize=(9, 2.2 * len(attacks)), sharex=True, squeeze=False)
    for axis, outcome in zip(axes[:, 0], attacks, strict=True):
        _draw_panel(axis, outcome)
    axes[0, 0].legend(loc="lower left", bbox_to_anchor=(0, 1.15), fontsize="small", ncols=len(LINES), frameon=False)
    axes[-1, 0].set_xlabel("seconds from the beginning of the attack")
    figure.tight_layout()
    figure.savefig(path, dpi=100, metadata={"Software": None})
    pyplot.close(figure)


TICKS_MS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
LINES = (
    ("produce p99", "#3b75af", "-"),
    ("produce p50", "#3b75af", ":"),
    ("fetch p99", "#b03a2e", "-"),
    ("fetch p50", "#b03a2e", ":"),
)


def _draw_panel(axis: Any, outcome: Outcome) -> None:
    seconds = [point["second"] for point in outcome.timeline]
    for name, color, style in LINES:
        axis.plot(seconds, [point[name] for point in outcome.timeline], style, color=color, linewidth=1.2, label=name)
    axis.axvspan(0, outcome.seconds, color="#444444", alpha=0.12)
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    ticks = [tick for tick in TICKS_MS if low <= tick <= high]
    axis.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_yticks([], minor=True)
    axis.set_ylabel("ms")
    axis.set_title(f"the noisy instance {outcome.title}", fontsize="medium")
    axis.grid(axis="both", alpha=0.3)
