"""A wait that ends early when there is something to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from kafkacompat.timers import Clock, DelayedCall


class Rest:
    """The wait of one fetcher, with or without a time limit."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: Deferred[None] | None = None
        self._call: DelayedCall | None = None

    def begin(self, limit_s: float | None) -> Deferred[None]:
        """Begin to wait; fires after *limit_s* if that is not None, and in the turn after a call of `end`."""
        waiting = self._waiting = Deferred()
        if limit_s is not None:
            self._call = self._clock.callLater(max(limit_s, 0), self._fire)
        return waiting

    def end(self) -> None:
        """End the wait, if there is one, in the next turn: what this turn still adds is seen then, too."""
        if self._waiting is None:
            return
        if self._call is not None:
            self._call.cancel()
        self._call = self._clock.callLater(0, self._fire)

    def _fire(self) -> None:
        waiting, self._waiting, self._call = self._waiting, None, None
        if waiting is not None:
            waiting.callback(None)
