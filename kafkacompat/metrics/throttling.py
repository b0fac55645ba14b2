"""How often clients, and new connections, were throttled, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kafkacompat.metrics.places import OTHER

ClientNames: TypeAlias = "tuple[str, ...]"
"""The clients that share a quota: a user and a client id; an empty text stands for any."""

OTHERS: ClientNames = (OTHER, OTHER)
"""All clients without figures of their own."""
IDLE_MS = 3_600_000
"""Time after which a client that was not throttled again loses its figures, as in Kafka."""
MOST_CLIENTS = 1000


@dataclass(slots=True)
class ThrottleFigures:
    """The number of throttle times, and their sum, since the start; ``last_ms`` is the time of the last one."""

    count: int = 0
    total_ms: int = 0
    last_ms: int = 0

    def add(self, throttle_ms: int, now_ms: int) -> None:
        """Count one throttle time."""
        self.count += 1
        self.total_ms += throttle_ms
        self.last_ms = now_ms


class ThrottledClients:
    """The throttle times of one kind of quota: ``total`` has all, ``by_client`` those of at most *limit* clients, and of `OTHERS`."""

    def __init__(self, limit: int = MOST_CLIENTS) -> None:
        self.total = ThrottleFigures()
        self.by_client: dict[ClientNames, ThrottleFigures] = {}
        self._limit = limit

    def add(self, client: ClientNames, throttle_ms: int, now_ms: int) -> None:
        """Count one throttle time of a client."""
        self.total.add(throttle_ms, now_ms)
        if client not in self.by_client and len(self.by_client) >= self._limit:
            client = OTHERS
        self.by_client.setdefault(client, ThrottleFigures()).add(throttle_ms, now_ms)

    def forget_idle(self, now_ms: int) -> None:
        """Forget the clients that were not throttled for a long time."""
        for client in [client for client, figures in self.by_client.items() if now_ms - figures.last_ms > IDLE_MS]:
            del self.by_client[client]
