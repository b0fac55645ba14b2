"""Figures as short texts."""

from __future__ import annotations

from datetime import datetime, timezone

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
MAX_TIME_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""
SECONDS_IN_LABELS = (("d", 86400), ("h", 3600), ("min", 60))


def format_bytes(size_bytes: float) -> str:
    """Return a size in decimal units, such as 1.5 MB."""
    value, unit = float(size_bytes), 0
    while abs(value) >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} B" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"


def format_number(value: float) -> str:
    """Return a number with groups of three digits; one below 100 may have decimals."""
    return f"{value:,.0f}".replace(",", "\u202f") if abs(value) >= 100 or value == int(value) else f"{value:.1f}"


def format_time(time_ms: int) -> str:
    """Return a time as date and time of day in UTC with milliseconds; a time that no calendar has is a number."""
    if not 0 <= time_ms <= MAX_TIME_MS:
        return f"{time_ms} ms"
    moment = datetime.fromtimestamp(time_ms // 1000, timezone.utc)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{time_ms % 1000:03d}"


def parse_time(text: str) -> int:
    """Return the milliseconds of a time: date and time of day in UTC, or milliseconds since 1970. Raises ValueError."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) > 8:
        time_ms = int(text[:20])
    else:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00") if text.endswith("Z") else text)
        time_ms = int((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000)
    if not 0 <= time_ms <= MAX_TIME_MS:
        raise ValueError(f"{text} is out of bounds")
    return time_ms
