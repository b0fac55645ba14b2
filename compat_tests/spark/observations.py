"""Observations of Spark by tests, as lines of JSON, and the differences between two brokers' observations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# test -> name of the observation -> value
Observations = Mapping[str, Mapping[str, Any]]
ABSENT = "nothing"
SHOWN = 500


def append_observations(file: Path, test: str, seen: Mapping[str, Any], topic: str) -> None:
    """Append a test's observations to a file; its own topic, whose name counts the tests before it, becomes "topic"."""
    with file.open("a") as lines:
        lines.write(json.dumps({"test": test, "seen": seen}).replace(topic, "topic") + "\n")


def read_observations(file: Path) -> Observations:
    """Return the observations in a file; none if it does not exist."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {entry["test"]: entry["seen"] for entry in map(json.loads, lines)}


def compare_observations(observed: Mapping[str, Observations]) -> tuple[list[str], bool]:
    """Compare two brokers' observations; return lines about them, and whether there are any and all are equal."""
    (broker, ours), (other, theirs) = observed.items()
    lines: list[str] = []
    for test, name, our_value, their_value in list_differences(ours, theirs):
        lines += [
            f"{test}: {name}",
            f"  {broker}: {shorten_value(our_value, their_value)}",
            f"  {other}: {shorten_value(their_value, our_value)}",
        ]
    noted = sum(len(seen) for seen in ours.values())
    different = len(lines) // 3
    lines.append(f"{noted} observations of {len(ours)} tests on {broker} and on {other}: {different} differ")
    return lines, different == 0 and noted > 0


def list_differences(ours: Observations, theirs: Observations) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield (test, name, our value, their value) for each value that is missing on one broker or differs."""
    for test in sorted(ours.keys() | theirs.keys()):
        our_values, their_values = ours.get(test, {}), theirs.get(test, {})
        for name in sorted(our_values.keys() | their_values.keys()):
            if our_values.get(name, ABSENT) != their_values.get(name, ABSENT):
                yield test, name, our_values.get(name, ABSENT), their_values.get(name, ABSENT)


def shorten_value(value: Any, other: Any) -> str:
    """Return a value as text, without the part of a list that the other has too."""
    if isinstance(value, list) and isinstance(other, list):
        value = [item for item in value if item not in other] or value
    return str(value)[:SHOWN]
