"""The result of an audit: plain data, and its form on a console."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from spark_integration.audit.findings import Row
from spark_integration.audit.formatting import finding_columns, format_cell, format_count, format_duration, format_time
from spark_integration.audit.kinds import PROBLEMS, describe_count
from spark_integration.queries.summary import Summary


@dataclass(frozen=True)
class AuditSummary(Summary):
    """What an audit found; everything in it is plain data.

    *topics* has a row for each place and topic: `records`, `offsets` (of a topic), `producers`, `first_ms` and
    `last_ms` (of timestamps) and `found`, the counts by kind. *latency* has a row for each stage, in milliseconds.
    *producers* are first those with most findings, then those with most records. *windows* are counts by time.
    *details* are the first findings of each kind.
    """

    verdict: str
    failed_on: list[str]
    found: dict[str, int]
    topics: list[Row]
    latency: list[Row]
    producers: list[Row]
    details: dict[str, list[Row]]
    notes: list[str]
    window_ms: int
    windows: list[Row]
    latency_windows: list[Row]

    @property
    def exit_code(self) -> int:
        """1 if a condition of `--fail-on` holds."""
        return 1 if self.failed_on else 0

    def show(self) -> None:
        """Print the verdict, a table, and the first findings of each kind on standard output."""
        Console(highlight=False).print(render_summary(self))


def audit_verdict(counts: Mapping[str, int], topics: list[Row], *, by_sequence: bool) -> str:
    """Return a line that says what is wrong, or that nothing is."""
    names = {row["topic"] for row in topics}
    where = (
        f"{_pluralize_word(sum(row['records'] for row in topics), 'record')} in {_pluralize_word(len(names), 'topic')}"
    )
    if problems := [describe_count(kind, counts[kind]) for kind in PROBLEMS if kind in counts]:
        return f"PROBLEMS in {where}: {'; '.join(problems)}"
    if unknown := counts.get("unexamined"):
        return f"UNSURE of {where}: {describe_count('unexamined', unknown)}; no problem in the rest"
    if by_sequence:
        cut = f" but for {describe_count('cut-sequence', counts['cut-sequence'])}" if "cut-sequence" in counts else ""
        return f"OK: {where}, no sequence missing, twice or out of order{cut}"
    return f"OK by offsets: {where}; --sequence-field would tell what producers sent"


def _pluralize_word(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def render_summary(summary: AuditSummary) -> RenderableType:
    """Return the summary for a console."""
    return Group(*_summary_parts(summary))


def _summary_parts(summary: AuditSummary) -> Iterator[RenderableType]:
    yield Text(summary.verdict, style="bold green" if summary.verdict.startswith("OK") else "bold red")
    yield from (Text(f"fails on {clause}", style="red") for clause in summary.failed_on)
    yield _make_table(
        ["", "topic", "records", "offsets", "producers", "first", "last", "found"],
        [
            [
                row["place"],
                row["topic"],
                format_count(row["records"]),
                format_count(row["offsets"]),
                format_count(row["producers"]),
                format_time(row["first_ms"]),
                format_time(row["last_ms"]),
                ", ".join(f"{count:,} {kind}" for kind, count in row["found"].items()) or "nothing",
            ]
            for row in summary.topics
        ],
    )
    if summary.latency:
        yield _make_table(
            ["", "topic", "latency", "records", "p50", "p99", "p99.9", "max", "negative"],
            _latency_cells(summary.latency),
        )
    yield from _detail_tables(summary)
    yield from (Text(f"Note: {note}", style="dim") for note in summary.notes)


def _latency_cells(rows: list[Row]) -> list[list[str]]:
    figures = ("p50", "p99", "p99.9", "max")
    return [
        [
            row["place"],
            row["topic"],
            row["stage"].replace("-", " → "),
            format_count(row["records"]),
            *(format_duration(row[name]) for name in figures),
            format_count(row["negative"]),
        ]
        for row in rows
    ]


def _detail_tables(summary: AuditSummary) -> Iterator[RenderableType]:
    for kind, rows in summary.details.items():
        total = summary.found.get(kind, 0)
        shown = sum(row["count"] for row in rows)
        more = f", the first {shown:,}" if shown < total else ""
        yield Text(f"\n{describe_count(kind, total)}{more}", style="bold")
        yield _make_table(
            finding_columns(rows), [[format_cell(row[name]) for name in finding_columns(rows)] for row in rows]
        )


def _make_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, name in enumerate(columns):
        is_number = all(row[place][:1].isdigit() or row[place] in ("", "-") for row in rows)
        table.add_column(name.replace("_", " "), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(text) for text in row))
    return table
