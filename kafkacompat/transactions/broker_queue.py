"""What one other broker is asked for: one request is under way, and everything that comes meanwhile joins the next one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from twisted.internet.defer import Deferred

from kafkacompat.wire.schema import Request

SendRequest: TypeAlias = "Callable[[int, str, Request, float], Deferred[Any]]"
"""Sends a request to a broker: (node id, purpose, request, timeout in seconds). Fails if there is no response."""

MOST_PARTITIONS = 10_000
"""Partitions in one request, so that no broker refuses it and none works on it for long."""


class QueueEntry(Protocol):
    """A part of a request; a request has at most one entry of each ``key``, as its response names no more than that."""

    @property
    def key(self) -> Hashable: ...
    @property
    def partition_count(self) -> int: ...


Entry = TypeVar("Entry", bound=QueueEntry)


class BrokerQueue(Generic[Entry]):
    """The entries for one broker. ``send_batch`` sends a request and answers its entries; its Deferred never fails."""

    def __init__(self, send_batch: Callable[[list[Entry]], Deferred[None]]) -> None:
        self._send_batch = send_batch
        self._waiting: deque[Entry] = deque()
        self._is_sending = False

    def add(self, entry: Entry) -> None:
        """Send an entry now, or with the next request if one is under way."""
        self._waiting.append(entry)
        self._send_next()

    def _send_next(self) -> None:
        if self._waiting and not self._is_sending:
            self._is_sending = True
            self._send_batch(self._take_batch()).addCallback(self._on_sent)

    def _on_sent(self, _: None) -> None:
        self._is_sending = False
        self._send_next()

    def _take_batch(self) -> list[Entry]:
        """Take the oldest entries that fit into one request; one entry always does."""
        batch: dict[Hashable, Entry] = {}
        left: deque[Entry] = deque()
        room = MOST_PARTITIONS
        for entry in self._waiting:
            if entry.key in batch or (batch and entry.partition_count > room):
                left.append(entry)
            else:
                batch[entry.key] = entry
                room -= entry.partition_count
        self._waiting = left
        return list(batch.values())
