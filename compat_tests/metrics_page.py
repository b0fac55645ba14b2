"""docs/METRICS.md: `python -m compat_tests.metrics_page` writes the tables of the metrics into it."""

from __future__ import annotations

from pathlib import Path

from compat_tests.pages import render_table, replace_section
from kafkacompat.monitoring.table import TABLES, parse_rows

PAGE = Path(__file__).resolve().parent.parent / "docs" / "METRICS.md"
BEGIN, END = "<!-- metrics: begin -->", "<!-- metrics: end -->"
HEAD = ("name", "type", "labels", "meaning")


def render_tables() -> str:
    """Render the table of each subject."""
    parts = []
    for subject, table in TABLES.items():
        rows = [(f"`{row.sample_name}`", row.kind, ", ".join(row.labels), row.text) for row in parse_rows(table)]
        parts.append(f"\n### {subject}\n\n{render_table(HEAD, rows)}")
    return "".join(parts)


def write_tables(page: str) -> str:
    """Return the page with the present tables."""
    return replace_section(page, BEGIN, END, render_tables())


if __name__ == "__main__":
    PAGE.write_text(write_tables(PAGE.read_text()))
