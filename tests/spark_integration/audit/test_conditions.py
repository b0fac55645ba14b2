"""The conditions of `--fail-on`, and when they hold."""

from __future__ import annotations

from typing import Any

import pytest

from spark_integration.audit.conditions import parse_conditions
from spark_integration.audit.kinds import PROBLEMS
from spark_integration.errors import PipelineError

LATENCY: list[dict[str, Any]] = [
    {"topic": "a", "stage": "event-broker", "p50": 20, "p99": 700, "p99.9": 800, "max": 900},
    {"topic": "a", "stage": "broker-archive", "p50": 5_000, "p99": 60_000, "p99.9": 60_000, "max": 61_000},
]


def list_met(text: str, **counts: int) -> list[str]:
    return [clause for condition in parse_conditions(text) for clause in condition.met(counts, LATENCY)]


def test_kinds() -> None:
    assert list_met("gap,duplicate", duplicate=2) == ["2 duplicate (records with a sequence that occurred before)"]
    assert list_met("marker", marker=1, gap=3) == ["1 marker (offsets of transaction markers)"]
    assert list_met("", gap=3) == []


def test_any_problem() -> None:
    assert list_met("problem", marker=1, aborted=1) == []
    for kind in PROBLEMS:
        assert len(list_met("problem", **{kind: 1})) == 1


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("latency:p99>500ms", 2),
        ("latency:p99 > 0.7s", 1),
        ("latency:event-broker:p99>500ms", 1),
        ("latency:event-broker:p99.9>1s", 0),
        ("latency:broker-archive:max>1m", 1),
        ("latency:broker-archive:max>2m", 0),
    ],
)
def test_limits_of_latency(text: str, times: int) -> None:
    assert len(list_met(text)) == times


def test_a_latency_that_was_not_measured() -> None:
    clause = "latency:event-archive:p50>1h: nothing was measured"
    assert list_met("latency:event-archive:p50>1h,latency:p50>1h") == [clause]
    (condition,) = parse_conditions("latency:max>1h")
    assert condition.met({}, []) == ["latency:max>1h: nothing was measured"]


@pytest.mark.parametrize(
    "text",
    ["gaps", "latency", "latency:p99", "latency:p98>1s", "latency:p99>1x", "latency:there:p99>1s", "latency:p99<1s"],
)
def test_a_bad_condition_is_refused(text: str) -> None:
    with pytest.raises(PipelineError):
        parse_conditions(f"gap,{text}")
