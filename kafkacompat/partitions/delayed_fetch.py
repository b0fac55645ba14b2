"""A fetch that waits for data: it completes exactly once, when enough has arrived or when its time is up.

After a first read that found too little, a fetch completes when

* A: `fetch.min.bytes` have arrived in its partitions together,
* B: a partition has news that cannot wait (it was deleted, or its log failed), or
* C: `fetch.max.wait.ms` have passed.

A and B take effect at the end of the reactor's turn, so that one Fetch response carries all batches of one Produce
request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from kafkacompat.partitions.fetch_watchers import FetchWatcher
from kafkacompat.timers import Clock, DelayedCall


class WatchedPartition(Protocol):
    """A partition, as a waiting fetch sees it."""

    def watch(self, watcher: FetchWatcher, *, committed: bool) -> None:
        """Notify *watcher* of what becomes readable."""

    def watch_log_end(self, watcher: FetchWatcher) -> None:
        """Notify *watcher* of every append."""

    def unwatch(self, watcher: FetchWatcher) -> None:
        """Stop notifying *watcher*."""


class DelayedFetch:
    """One waiting fetch; ``result`` fires when its partitions are to be read again.

    It waits for *missing_bytes* and at most *max_wait_ms*. With *committed* only bytes below the last stable offset
    count, with *to_log_end*, for a replica, all appended bytes.
    """

    def __init__(
        self,
        clock: Clock,
        watched: Sequence[WatchedPartition],
        *,
        missing_bytes: int,
        max_wait_ms: int,
        committed: bool = False,
        to_log_end: bool = False,
    ) -> None:
        self.result: Deferred[None] = Deferred(lambda _: self._detach())
        self._clock = clock
        self._watched = watched
        self._missing_bytes = missing_bytes
        self._soon: DelayedCall | None = None
        self._timeout = clock.callLater(max_wait_ms / 1000, self._finish)
        for partition in watched:
            if to_log_end:
                partition.watch_log_end(self)
            else:
                partition.watch(self, committed=committed)

    def note_bytes(self, size_bytes: int) -> None:
        """Case A: bytes became readable in one of the partitions."""
        self._missing_bytes -= size_bytes
        if self._missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        """Case B: complete at the end of this turn, however little has arrived."""
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
