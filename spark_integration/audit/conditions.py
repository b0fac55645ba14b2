"""The conditions of `--fail-on`: kinds of findings, and limits of latency."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_integration.audit.kinds import KINDS, PROBLEMS, describe_count
from spark_integration.audit.settings import PERCENTILES
from spark_integration.errors import PipelineError

UNITS_MS: Mapping[str, float] = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
FIGURES = (*PERCENTILES, "max")
STAGES = ("event-producer", "event-broker", "broker-archive", "event-archive")
LATENCY = re.compile(
    r"latency:(?:(?P<stage>[a-z-]+):)?(?P<figure>[a-z0-9.]+)>(?P<number>\d+(?:\.\d+)?)(?P<unit>[a-z]+)"
)


@dataclass(frozen=True)
class FailureCondition:
    """A condition: that a kind is found at all, or that a latency's figure (of *stage*, or of any) exceeds a limit."""

    text: str
    kind: str | None = None
    stage: str | None = None
    figure: str = ""
    limit_ms: float = 0

    def met(self, counts: Mapping[str, int], latency: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return a clause for each time that the condition holds, or if no latency was measured at all."""
        if self.kind is not None:
            return [describe_count(self.kind, counts[self.kind])] if counts.get(self.kind) else []
        rows = [row for row in latency if self.stage in (None, row["stage"])]
        if not rows:
            return [f"{self.text}: nothing was measured"]
        return [
            f"{self.text}: {row[self.figure]:,} ms from {row['stage'].replace('-', ' to ')} in {row['topic']}"
            for row in rows
            if row[self.figure] > self.limit_ms
        ]


def parse_conditions(text: str) -> list[FailureCondition]:
    """Parse conditions, separated by commas; ``problem`` stands for every kind that is a problem; raises PipelineError."""
    conditions: list[FailureCondition] = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        conditions += (
            [FailureCondition(kind, kind) for kind in PROBLEMS] if word == "problem" else [_parse_condition(word)]
        )
    return conditions


def _parse_condition(word: str) -> FailureCondition:
    if word in KINDS:
        return FailureCondition(word, word)
    read = LATENCY.fullmatch(word.replace(" ", ""))
    if read is None or read["unit"] not in UNITS_MS or read["figure"] not in FIGURES:
        raise PipelineError(
            f"--fail-on does not know {word!r}: give problem, {', '.join(KINDS)}, "
            f"or latency:p99>500ms ({', '.join(FIGURES)})"
        )
    if read["stage"] not in (None, *STAGES):
        raise PipelineError(f"{read['stage']!r} is no stage of latency: give one of {', '.join(STAGES)}")
    return FailureCondition(word, None, read["stage"], read["figure"], float(read["number"]) * UNITS_MS[read["unit"]])
