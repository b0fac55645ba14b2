"""The table of docs/RELIABILITY.md that says how long failures last, filled from the stored results of some rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.row import KAFKA, RECORDS
from bench.summary import format_figure
from compat_tests.pages import render_table, replace_section

PAGE = Path(__file__).resolve().parent.parent / "docs" / "RELIABILITY.md"
MARKS = ("<!-- failures: made by bench/failures.py -->\n", "<!-- end of failures -->")
HEAD = ("what", "this broker", KAFKA, "goal")
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Failure:
    """One line of the table: metrics of a row, in one unit."""

    title: str
    row: str
    metrics: Sequence[str]
    unit: str = ""
    goal: str = ""

    def cells(self, stored: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the line's cells, with the medians of both contenders."""
        results = stored[self.row]["results"] if self.row in stored else {}
        return (self.title, *(self._figures(results.get(contender)) for contender in (RECORDS, KAFKA)), self.goal)

    def _figures(self, samples: Sequence[Mapping[str, float]] | None) -> str:
        if samples is None:
            return NOT_MEASURED
        medians = (format_figure(median(sample[metric] for sample in samples)) for metric in self.metrics)
        return ", ".join(f"{figure} {self.unit}".strip() for figure in medians)


FAILURES = (
    Failure(
        "a leader killed: from its session's expiry to the first new acknowledgement",
        "failover-expiry",
        ["expiry to acknowledgement s"],
        "s",
        "0.5 s",
    ),
    Failure(
        "a leader killed: from the kill to that acknowledgement, with session timeouts of 6 s",
        "failover-kill",
        ["kill to acknowledgement s"],
        "s",
        "Kafka's",
    ),
    Failure(
        "a leader stopped in good order, and started: longest time between two acknowledgements",
        "failover-shutdown",
        ["longest produce gap s"],
        "s",
        "0.3 s",
    ),
    Failure(
        "the controller killed: longest time between two acknowledgements, and between two reads",
        "failover-controller",
        ["longest produce gap s", "longest fetch gap s"],
        "s",
        "no client notices",
    ),
    Failure(
        "1,000 partitions with three replicas off a killed broker, the controller among them: from the expiry to the last leader",
        "failover-partitions",
        ["expiry to the last leader s"],
        "s",
        "5 s",
    ),
    Failure(
        "a broker that is back leads its partitions again, from its catching up",
        "failover-partitions",
        ["in sync to leading again s"],
        "s",
        "10 s",
    ),
    Failure("a reassignment's rate, of its throttle", "reassignment", ["rate / throttle"], "", "0.9 to 1.1"),
    Failure(
        "produce p99 during a reassignment, of its own before",
        "reassignment",
        ["produce p99 meanwhile / before"],
        "times",
        "2 times",
    ),
)


def fill_page(page: str, stored: Mapping[str, Any]) -> str:
    """Return the page with the table of the stored results."""
    return replace_section(page, *MARKS, render_table(HEAD, [failure.cells(stored) for failure in FAILURES]))


def write_page(stored: Mapping[str, Any]) -> None:
    """Write the table into docs/RELIABILITY.md."""
    PAGE.write_text(fill_page(PAGE.read_text(), stored))
