"""The values that clients have pushed, within bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from kafkacompat.metrics.places import SeriesPlaces

Labels: TypeAlias = "tuple[tuple[str, str], ...]"

ORIGIN = "org.apache.kafka."
CLIENT_LABELS = ("client_instance_id", "client_id", "client_software_name", "client_software_version")
"""The labels that say which client has pushed a value; a client cannot set them."""
MAX_NAMES = 1000
POINTS_PER_CLIENT = 10
"""Values for each allowed client, on average; a Java producer has some 30, but few brokers have that many clients."""
MAX_LABELS = 8
MAX_LABEL_CHARACTERS = 200
_OTHER_CHARACTERS = re.compile(r"[^a-zA-Z0-9_]")


class Point(NamedTuple):
    """One value of a metric. ``is_counter`` marks a sum that only grows; with ``is_delta`` it is what was added since the last one."""

    name: str
    labels: Labels
    value: float
    is_counter: bool = False
    is_delta: bool = False


def clean_name(name: str) -> str:
    """Return the name of a metric as Prometheus allows it after a prefix."""
    return _OTHER_CHARACTERS.sub("_", name.removeprefix(ORIGIN))[:MAX_LABEL_CHARACTERS]


def clean_label(name: str) -> str:
    """Return the name of a label as Prometheus allows it: those that begin with two underscores are its own."""
    cleaned = clean_name(name).lstrip("_")
    return cleaned if cleaned[:1].isalpha() else f"attribute_{cleaned}"


class PointStore:
    """The values by client. At most *limit* clients and *limit* times `POINTS_PER_CLIENT` values are kept; others are dropped."""

    def __init__(self, limit: int) -> None:
        self.dropped = 0
        self._clients: SeriesPlaces[bytes] = SeriesPlaces(limit)
        self._max_points = limit * POINTS_PER_CLIENT
        self._kinds: dict[str, bool] = {}
        self._points: dict[bytes, dict[str, dict[Labels, float]]] = {}
        self._count = 0

    def add(self, client: bytes, points: Iterable[Point]) -> None:
        """Keep the values of one push."""
        if not self._clients.take(client):
            self.dropped += sum(1 for _ in points)
            return
        metrics = self._points.setdefault(client, {})
        for point in points:
            # A counter and a gauge of one name, with and without _total, would be the same series.
            name = clean_name(point.name).removesuffix("_total")
            if len(self._kinds) < MAX_NAMES:
                self._kinds.setdefault(name, point.is_counter)
            if self._kinds.get(name) is not point.is_counter:
                self.dropped += 1
                continue
            values = metrics.setdefault(name, {})
            if point.labels not in values:
                if self._count >= self._max_points:
                    self.dropped += 1
                    continue
                self._count += 1
                values[point.labels] = 0.0
            values[point.labels] = point.value + (values[point.labels] if point.is_delta else 0.0)

    def keep(self, clients: Iterable[bytes]) -> None:
        """Forget all other clients."""
        existing = set(clients)
        self._clients.keep(existing)
        gone = [client for client in self._points if client not in existing]
        for client in gone:
            self._count -= sum(map(len, self._points.pop(client).values()))
        if gone:
            used = {name for metrics in self._points.values() for name in metrics}
            self._kinds = {name: is_counter for name, is_counter in self._kinds.items() if name in used}

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        """Yield the names of the metrics, and whether they are counters."""
        return iter(sorted(self._kinds.items()))

    def list_values(self, name: str) -> Iterator[tuple[bytes, Labels, float]]:
        """Yield (client, labels, value) of one metric."""
        for client, metrics in self._points.items():
            for labels, value in metrics.get(name, {}).items():
                yield client, labels, value
