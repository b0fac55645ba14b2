"""Counts, times and durations as a report shows them, on a console or in HTML. Imports no pyspark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

# The year 3000.
END_MS = 32_503_680_000_000
UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def finding_columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the columns of findings for a heading, without their kind."""
    return [name for name in rows[0] if name != "kind"]


def format_cell(value: object) -> str:
    """Format a value of a finding."""
    return "" if value is None else str(value)


def format_count(value: int | None) -> str:
    """Format a count; an unknown one is a dash."""
    return "-" if value is None else f"{value:,}"


def format_time(timestamp_ms: int | None) -> str:
    """Format milliseconds since 1970 as a time in UTC, to the second; a number that is no time of a record as it is."""
    if timestamp_ms is None:
        return "-"
    moment = record_time(timestamp_ms)
    return str(timestamp_ms) if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"


def record_time(timestamp_ms: int) -> datetime | None:
    """Return the time in UTC; None for numbers that are no time of a record (before 1970, or from the year 3000 on)."""
    if not 0 <= timestamp_ms < END_MS:
        return None
    return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)


def format_duration(milliseconds: int) -> str:
    """Format a duration in the largest unit of which it has at least two."""
    for name, unit_ms in UNITS_MS:
        if abs(milliseconds) >= 2 * unit_ms:
            return f"{milliseconds / unit_ms:,.1f} {name}"
    return f"{milliseconds} ms"
