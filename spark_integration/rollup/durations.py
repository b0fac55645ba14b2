"""Lengths of time as Spark writes them, and the windows that they make."""

from __future__ import annotations

import re
from typing import NamedTuple

from spark_integration.errors import PipelineError

UNITS_MS = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
# Like Spark, require a space after the number and an end after the unit.
_PART = re.compile(rf"(\d+)\s+({'|'.join(UNITS_MS)})s?\b")


def parse_duration_ms(text: str, option: str) -> int:
    """Parse ``1 minute`` or ``1 hour 30 minutes``; raises PipelineError that names *option*."""
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip():
        raise PipelineError(
            f"--{option} {text!r} is no length of time: write it like '5 minutes' ({', '.join(UNITS_MS)})"
        )
    return sum(int(count) * UNITS_MS[unit] for count, unit in parts)


class WindowLengths(NamedTuple):
    """Windows of *length_ms* that begin every *slide_ms*, counted from 1970-01-01T00:00:00Z."""

    length_ms: int
    slide_ms: int

    @property
    def overlaps(self) -> bool:
        """Whether an event can be in several windows."""
        return self.slide_ms < self.length_ms


def parse_windows(window: str, slide: str | None) -> WindowLengths:
    """Parse the two options; raises PipelineError if they make no windows."""
    length_ms = parse_duration_ms(window, "window")
    slide_ms = length_ms if slide is None else parse_duration_ms(slide, "slide")
    if length_ms == 0 or slide_ms == 0:
        raise PipelineError("windows need a length: give --window and --slide longer than 0")
    if slide_ms > length_ms:
        raise PipelineError(
            f"--slide {slide!r} is longer than --window {window!r}: events between windows would be lost"
        )
    return WindowLengths(length_ms, slide_ms)
