"""Fetches that wait for data: complete when enough has arrived or when their time is up, exactly once.

A fetch completes, after it was first tried without enough to answer, when

* A: `fetch.min.bytes` have arrived in its partitions together since then,
* B: one of its partitions has news that cannot wait (it was deleted, its leader changed, its log failed), or
* C: `fetch.max.wait.ms` have passed.

A and B take effect at the end of the reactor's turn, so that the batches of one Produce request for
several partitions are answered by one Fetch response and not by several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from kafkacompat.partitions.fetch_watchers import FetchWatcher
from kafkacompat.timers import Clock, DelayedCall


class Watched(Protocol):
    """A partition, as far as a waiting fetch knows it."""

    def watch(self, watcher: FetchWatcher, *, committed: bool) -> None:
        """Tell *watcher* what becomes readable."""

    def unwatch(self, watcher: FetchWatcher) -> None:
        """Tell it no more."""


class DelayedFetch:
    """One waiting fetch; ``result`` fires when it is to be tried again. With *committed* only what is stable counts."""

    def __init__(
        self,
        clock: Clock,
        watched: Sequence[Watched],
        *,
        missing_bytes: int,
        max_wait_ms: int,
        committed: bool = False,
    ) -> None:
        self.result: Deferred[None] = Deferred(lambda _: self._detach())
        self._clock = clock
        self._watched = watched
        self._missing_bytes = missing_bytes
        self._soon: DelayedCall | None = None
        self._timeout = clock.callLater(max_wait_ms / 1000, self._finish)
        for partition in watched:
            partition.watch(self, committed=committed)

    def arrived(self, size_bytes: int) -> None:
        """Case A: bytes became readable in one of the partitions."""
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        """Case B: answer now, whatever there is."""
        if self._soon is None:
            self._soon = self._clock.callLater(0, self._finish)

    def _detach(self) -> None:
        for partition in self._watched:
            partition.unwatch(self)
        for call in (self._timeout, self._soon):
            if call is not None and call.active():
                call.cancel()

    def _finish(self) -> None:
        self._detach()
        self.result.callback(None)
