"""The usage of instances by hours, and the state that a broker keeps of it over restarts; without I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple

from kafkacompat.usage.figures import InstanceUsage

HOUR_MS = 3_600_000
VERSION = 1
SUMS = ("produced_bytes", "produced_records", "fetched_bytes", "throttled_ms")
"""Figures that grow: a record has what they have grown by in its hour."""
PEAKS = ("stored_bytes", "topics", "partitions", "groups", "connections")
"""Figures that go up and down: a record has the largest value that was seen."""
MAX_UNWRITTEN = 100_000
"""Records that wait while the topic cannot be written; the oldest are dropped."""


class UsageRecord(NamedTuple):
    """One record of the topic: the key names instance, hour and broker, so that a record that is written twice counts once."""

    key: str
    value: str


class HourlyUsage:
    """Adds up the figures of one broker's instances by hours.

    `note` takes the present figures of an instance, `close_hour` makes the records of an hour that has ended. `save` and `load`
    give and take the state as text. Times are milliseconds since the epoch. The iterators have a step for each instance.
    """

    def __init__(self, node_id: int, now_ms: int) -> None:
        self._node_id = node_id
        self.hour_ms = _begin_of_hour(now_ms)
        self._sums: dict[str, dict[str, int]] = {}
        self._last: dict[str, InstanceUsage] = {}
        self._noted_ms: dict[str, int] = {}
        self.unwritten: list[UsageRecord] = []

    def is_over(self, now_ms: int) -> bool:
        """Return whether another hour is to begin. A clock that is set back by less than an hour begins none."""
        return not self.hour_ms - HOUR_MS <= now_ms < self.hour_ms + HOUR_MS

    def note(self, name: str, usage: InstanceUsage, now_ms: int) -> None:
        """Take the present figures of an instance. Those that grow began at 0 when the broker, or the instance, began."""
        sums = self._sums.setdefault(name, _begin_sums())
        last = self._last.get(name)
        for figure in SUMS:
            value, before = getattr(usage, figure), 0 if last is None else getattr(last, figure)
            sums[figure] += value - before if value >= before else value
        for figure in PEAKS:
            sums[figure] = max(sums[figure], getattr(usage, figure))
        passed_ms = max(0, min(now_ms, self.hour_ms + HOUR_MS) - self._noted_ms.get(name, now_ms))
        sums["measured_ms"] += passed_ms
        # The bytes of the last time stand for the time in between: they cannot have changed before.
        sums["stored_byte_ms"] += passed_ms * (usage.stored_bytes if last is None else last.stored_bytes)
        self._last[name] = usage
        self._noted_ms[name] = now_ms

    def forget_absent(self, names: set[str]) -> None:
        """Forget the last figures of instances that are gone; what they have used in this hour stays."""
        for name in self._last.keys() - names:
            del self._last[name]
            del self._noted_ms[name]

    def close_hour(self, now_ms: int) -> Iterator[None]:
        """Make a record for each instance of the hour that has ended, and begin the hour of *now_ms*."""
        hour = datetime.fromtimestamp(self.hour_ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:00:00Z")
        sums, self._sums = self._sums, {}
        self.hour_ms = _begin_of_hour(now_ms)
        self._noted_ms = dict.fromkeys(self._noted_ms, self.hour_ms)
        for name in sorted(sums):
            self.unwritten.append(self._build_record(name, hour, sums[name]))
            yield
        del self.unwritten[:-MAX_UNWRITTEN]

    def _build_record(self, name: str, hour: str, sums: Mapping[str, int]) -> UsageRecord:
        measured_ms = sums["measured_ms"]
        figures: dict[str, Any] = {
            "version": VERSION,
            "instance": name,
            "hour": hour,
            "broker": self._node_id,
            "measured_ms": measured_ms,
            **{figure: sums[figure] for figure in SUMS},
            **{f"max_{figure}": sums[figure] for figure in PEAKS},
            "mean_stored_bytes": sums["stored_byte_ms"] // measured_ms if measured_ms else sums["stored_bytes"],
        }
        return UsageRecord(f"{name}/{hour}/{self._node_id}", json.dumps(figures))

    def save(self, lines: list[bytes]) -> Iterator[None]:
        """Append the state to *lines* as JSON, one object a line: the hour, then the instances, then the records."""
        lines.append(_write_line({"version": VERSION, "hour_ms": self.hour_ms}))
        for name, sums in list(self._sums.items()):
            lines.append(_write_line({"instance": name, "sums": sums}))
            yield
        for record in list(self.unwritten):
            lines.append(_write_line({"key": record.key, "value": record.value}))
            yield

    def load(self, data: bytes, now_ms: int) -> None:
        """Continue with a saved state; an hour that has ended since then becomes records. Raises ValueError if it is damaged."""
        self.hour_ms, self._sums, self.unwritten = _parse_state(data)
        if self.is_over(now_ms):
            for _ in self.close_hour(now_ms):
                pass


def _begin_of_hour(at_ms: int) -> int:
    return at_ms // HOUR_MS * HOUR_MS


def _begin_sums() -> dict[str, int]:
    return dict.fromkeys((*SUMS, *PEAKS, "measured_ms", "stored_byte_ms"), 0)


def _write_line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _parse_state(data: bytes) -> tuple[int, dict[str, dict[str, int]], list[UsageRecord]]:
    try:
        head, *rest = map(json.loads, data.splitlines())
        if head["version"] != VERSION:
            raise ValueError(f"it has the version {head['version']}")
        sums = {
            str(line["instance"]): {**_begin_sums(), **dict(_check_counts(line["sums"]))}
            for line in rest
            if "instance" in line
        }
        unwritten = [UsageRecord(str(line["key"]), str(line["value"])) for line in rest if "instance" not in line]
        return int(head["hour_ms"]), sums, unwritten
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"it has another form ({problem!r})") from None


def _check_counts(counts: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for figure, value in counts.items():
        if not isinstance(value, int):
            raise TypeError(f"{figure} is {value!r}")
        yield figure, value
