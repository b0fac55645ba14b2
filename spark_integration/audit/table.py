"""What an audit prints: a line with the verdict, a small table, then the first of each kind of finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from spark_integration.audit.kinds import counted

if TYPE_CHECKING:
    from spark_integration.audit.findings import AuditSummary, Row

# The year 3000.
END_MS = 32_503_680_000_000
UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def show(summary: AuditSummary) -> None:
    """Print it on standard output."""
    console = Console(highlight=False)
    console.print(rendered(summary))


def rendered(summary: AuditSummary) -> RenderableType:
    """Put it together for a console."""
    return Group(*_parts(summary))


def _parts(summary: AuditSummary) -> Iterator[RenderableType]:
    yield Text(summary.verdict, style="bold green" if summary.verdict.startswith("OK") else "bold red")
    yield from (Text(f"fails on {clause}", style="red") for clause in summary.failed_on)
    yield _table(
        ["", "topic", "records", "offsets", "producers", "first", "last", "found"],
        [
            [
                row["place"],
                row["topic"],
                number(row["records"]),
                number(row["offsets"]),
                number(row["producers"]),
                time(row["first_ms"]),
                time(row["last_ms"]),
                ", ".join(f"{count:,} {kind}" for kind, count in row["found"].items()) or "nothing",
            ]
            for row in summary.topics
        ],
    )
    if summary.latency:
        yield _table(
            ["", "topic", "latency", "records", "p50", "p99", "p99.9", "max", "negative"], _latency(summary.latency)
        )
    yield from _details(summary)
    yield from (Text(f"Note: {note}", style="dim") for note in summary.notes)


def _latency(rows: list[Row]) -> list[list[str]]:
    figures = ("p50", "p99", "p99.9", "max")
    return [
        [
            row["place"],
            row["topic"],
            row["stage"].replace("-", " → "),
            number(row["records"]),
            *(duration(row[name]) for name in figures),
            number(row["negative"]),
        ]
        for row in rows
    ]


def _details(summary: AuditSummary) -> Iterator[RenderableType]:
    for kind, rows in summary.details.items():
        total = summary.found.get(kind, 0)
        shown = sum(row["count"] for row in rows)
        more = f", the first {shown:,}" if shown < total else ""
        yield Text(f"\n{counted(kind, total)}{more}", style="bold")
        yield _table(columns_of(rows), [[cell(row[name]) for name in columns_of(rows)] for row in rows])


def columns_of(rows: Sequence[Row]) -> list[str]:
    """Return what is told of findings, their kind left out, as a heading says it."""
    return [name for name in rows[0] if name != "kind"]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, name in enumerate(columns):
        is_number = all(row[place][:1].isdigit() or row[place] in ("", "-") for row in rows)
        table.add_column(name.replace("_", " "), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(text) for text in row))
    return table


def cell(value: object) -> str:
    """Write a value of a finding."""
    return "" if value is None else str(value)


def number(value: int | None) -> str:
    """Write a count; nothing where it is not known."""
    return "-" if value is None else f"{value:,}"


def time(timestamp_ms: int | None) -> str:
    """Write milliseconds since 1970 in UTC, to the second; of what is no time, the number."""
    if timestamp_ms is None:
        return "-"
    found = moment(timestamp_ms)
    return str(timestamp_ms) if found is None else f"{found:%Y-%m-%d %H:%M:%S}"


def moment(timestamp_ms: int) -> datetime | None:
    """Return the time in UTC; None before 1970 and from the year 3000 on, where it is no time of a record."""
    if not 0 <= timestamp_ms < END_MS:
        return None
    return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)


def duration(milliseconds: int) -> str:
    """Write a duration in the largest unit of which it has two."""
    for name, unit_ms in UNITS_MS:
        if abs(milliseconds) >= 2 * unit_ms:
            return f"{milliseconds / unit_ms:,.1f} {name}"
    return f"{milliseconds} ms"
