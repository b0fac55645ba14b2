"""The measured figures in the table of README.md; ``python -m bench.readme`` fills them in from the stored results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.report import load_results
from bench.row import KAFKA, RECORDS
from bench.summary import format_figure

PAGE = Path(__file__).resolve().parent.parent / "README.md"
SOURCE = "¹"
"""The footnote of README.md that names docs/BENCHMARKS.md."""


class Figure(NamedTuple):
    """A metric of a row, and the unit in which README.md has it."""

    row: str
    metric: str
    unit: str
    divisor: float = 1


FIGURES = {
    "start to the first answer": Figure("start", "seconds to first answer", "s"),
    "memory when idle": Figure("start", "resident MB", "MB"),
    "first record of a new group (librdkafka)": Figure("first-record-librdkafka", "first record ms", "s", 1000),
}
"""By the first cell of a line of the table; the next two cells are those of this broker and of Apache Kafka."""


def fill_page(page: str, stored: Mapping[str, Any]) -> str:
    """Return the page with the medians of the stored results."""
    return "\n".join(_fill_line(line, stored) for line in page.split("\n"))


def _fill_line(line: str, stored: Mapping[str, Any]) -> str:
    cells = line.split("|")
    figure = FIGURES.get(cells[1].strip()) if len(cells) > 3 else None
    if figure is None or figure.row not in stored:
        return line
    results = stored[figure.row]["results"]
    cells[2:4] = (f" {_find_median(results[name], figure)} {figure.unit} {SOURCE} " for name in (RECORDS, KAFKA))
    return "|".join(cells)


def _find_median(samples: Sequence[Mapping[str, float]], figure: Figure) -> str:
    return format_figure(median(sample[figure.metric] for sample in samples) / figure.divisor)


def write_page(stored: Mapping[str, Any]) -> None:
    """Write the figures into README.md."""
    PAGE.write_text(fill_page(PAGE.read_text(), stored))


if __name__ == "__main__":
    write_page(load_results())
