"""Rollups computed in plain Python, and results in topics and tables, read without Spark."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from compat_tests.brokers import Broker
from compat_tests.waiting import until

MINUTE_MS = 60_000
START_MS = 1_767_261_600_000  # 2026-01-01T10:00:00Z
MEASURES = (
    "count,sum(amount),max(amount),min(amount) as least,avg(amount),approx_distinct(user.id) as users,count(amount)"
)

Event = dict[str, Any]
# A result's key: window start in ISO 8601, then the dimensions. Its value holds all columns.
Key = tuple[Any, ...]
Results = dict[Key, dict[str, Any]]


def format_time(milliseconds: int) -> str:
    text = datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def make_event(minutes: float, country: str | None = "de", amount: Any = 1.0, user: int = 1) -> Event:
    """Return an event this many minutes after ten o'clock."""
    time = format_time(START_MS + int(minutes * MINUTE_MS))
    return {"time": time, "place": {"country": country}, "amount": amount, "user": {"id": user}}


def random_events(dice: random.Random, count: int, minutes: float) -> list[Event]:
    """Return events in random order; their amounts are sums of powers of two, so that every sum is exact."""
    return [
        make_event(
            dice.uniform(0, minutes),
            dice.choice(["de", "fr", "a|b", None]),
            dice.choice([dice.randrange(400) / 4, None, "none"]),
            dice.randrange(8),
        )
        for _ in range(count)
    ]


@dataclass
class Model:
    """Windows over events of `make_event`, by country, as batches bring them.

    An event is late by the watermark of the batch before its own.
    """

    window_ms: int = MINUTE_MS
    slide_ms: int = MINUTE_MS
    delay_ms: int = 5 * MINUTE_MS
    watermark_ms: int = 0
    late: int = 0
    partly_late: int = 0
    groups: dict[Key, list[Event]] = field(default_factory=dict)

    def batch(self, events: Iterable[Event], late_until_ms: int | None = None) -> None:
        """Add the events of one batch.

        *late_until_ms* is the watermark of the batch before, unless a run ended between them.
        """
        over_ms = self.watermark_ms if late_until_ms is None else late_until_ms
        latest = self.watermark_ms + self.delay_ms
        for event in events:
            time_ms = int(datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp() * 1000)
            latest = max(latest, time_ms)
            windows = list(self._windows(time_ms))
            open_ = [start for start in windows if start + self.window_ms > over_ms]
            self.late += not open_
            self.partly_late += 0 < len(open_) < len(windows)
            for start in open_:
                self.groups.setdefault((start, event["place"]["country"]), []).append(event)
        self.watermark_ms = latest - self.delay_ms

    def results(self, closed: bool = False, from_ms: int = 0) -> Results:
        """Return the results of windows that are over, or of all windows; those that end later than *from_ms*."""
        return {
            (format_time(start), country): {
                "window_start": format_time(start),
                "window_end": format_time(start + self.window_ms),
                "place_country": country,
                **compute_measures(events),
            }
            for (start, country), events in self.groups.items()
            if start + self.window_ms > from_ms and (not closed or start + self.window_ms <= self.watermark_ms)
        }

    def _windows(self, time_ms: int) -> Iterator[int]:
        start = time_ms - time_ms % self.slide_ms
        while start + self.window_ms > time_ms:
            yield start
            start -= self.slide_ms


def compute_measures(events: Sequence[Event]) -> dict[str, Any]:
    """Compute MEASURES."""
    amounts = [event["amount"] for event in events if isinstance(event["amount"], (int, float))]
    return {
        "count": len(events),
        "sum_amount": sum(amounts) if amounts else None,
        "max_amount": max(amounts, default=None),
        "least": min(amounts, default=None),
        "avg_amount": sum(amounts) / len(amounts) if amounts else None,
        "users": len({event["user"]["id"] for event in events}),
        # Values of every type count, numbers or not.
        "count_amount": sum(event["amount"] is not None for event in events),
    }


def read_messages(broker: Broker, topic: str, partitions: int = 1) -> list[Any]:
    """Return all messages of a topic, in the order of each partition."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "reads", "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
    ends = {
        number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1]
        for number in range(partitions)
    }
    messages: list[Any] = []

    def at_the_end() -> bool:
        messages.extend(message for message in consumer.consume(1000, timeout=0.2) if message.error() is None)
        places = {
            place.partition: place.offset for place in consumer.position([TopicPartition(topic, p) for p in ends])
        }
        return all(end == 0 or places[number] >= end for number, end in ends.items())

    until(at_the_end, every_seconds=0)
    consumer.close()
    return messages


def read_last_values(broker: Broker, topic: str, partitions: int = 1) -> tuple[Results, set[Key]]:
    """Return the last value of each key, and the keys whose last record is a tombstone."""
    last: dict[Key, Any] = {}
    for message in read_messages(broker, topic, partitions):
        key = tuple(json.loads(message.key()).values())
        last[key] = json.loads(message.value()) if message.value() is not None else None
    return {key: value for key, value in last.items() if value is not None}, {
        key for key, value in last.items() if value is None
    }


def read_table(folder: Path) -> Results:
    """Return the rows of a table in Parquet or Delta; AssertionError if it holds a row twice."""
    results: Results = {}
    for row in (row for file in files_of_table(folder) for row in read_rows(file)):
        texts = {name: _as_text(value) for name, value in row.items()}
        key = (texts["window_start"], texts["place_country"])
        assert key not in results, f"{key} is in the table twice"
        results[key] = texts
    return results


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Read a file's rows without the columns that its folder names, which Delta 4.2 writes into files as well."""
    partition_columns = [part.partition("=")[0] for part in file.parts if "=" in part]
    table = parquet.ParquetFile(file).read()
    rows: list[dict[str, Any]] = table.drop_columns(
        [name for name in partition_columns if name in table.column_names]
    ).to_pylist()
    return rows


def _as_text(value: Any) -> Any:
    return format_time(int(value.timestamp() * 1000)) if isinstance(value, datetime) else value


def files_of_table(folder: Path) -> list[Path]:
    """Return the files that are part of a table in Parquet or Delta."""
    if (folder / "_delta_log").exists():
        return _delta_files(folder)
    return [path for path in folder.rglob("*.parquet") if not any(part.startswith("_") for part in path.parts)]


def _delta_files(folder: Path) -> list[Path]:
    """Return the files that the log of a Delta table has added and not removed (Delta protocol, Actions)."""
    files: set[str] = set()
    for log in sorted((folder / "_delta_log").glob("*.json")):
        actions: list[Mapping[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
        files -= {action["remove"]["path"] for action in actions if "remove" in action}
        files |= {action["add"]["path"] for action in actions if "add" in action}
    return [folder / path for path in files]
