"""Counts, times and durations as a report shows them, on a console or in HTML. Imports no pyspark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

# The year 3000.
END_MS = 32_503_680_000_000
UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def finding_columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return what is told of findings, their kind left out, as a heading says it."""
    return [name for name in rows[0] if name != "kind"]


def format_cell(value: object) -> str:
    """Write a value of a finding."""
    return "" if value is None else str(value)


def format_count(value: int | None) -> str:
    """Write a count; nothing where it is not known."""
    return "-" if value is None else f"{value:,}"


def format_time(timestamp_ms: int | None) -> str:
    """Write milliseconds since 1970 in UTC, to the second; of what is no time, the number."""
    if timestamp_ms is None:
        return "-"
    found = record_time(timestamp_ms)
    return str(timestamp_ms) if found is None else f"{found:%Y-%m-%d %H:%M:%S}"


def record_time(timestamp_ms: int) -> datetime | None:
    """Return the time in UTC; None before 1970 and from the year 3000 on, where it is no time of a record."""
    if not 0 <= timestamp_ms < END_MS:
        return None
    return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)


def format_duration(milliseconds: int) -> str:
    """Write a duration in the largest unit of which it has two."""
    for name, unit_ms in UNITS_MS:
        if abs(milliseconds) >= 2 * unit_ms:
            return f"{milliseconds / unit_ms:,.1f} {name}"
    return f"{milliseconds} ms"
