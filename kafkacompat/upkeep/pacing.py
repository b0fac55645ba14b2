"""Pacing background work by a clock."""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed

from kafkacompat.timers import Clock


class InterruptibleWait:
    """A wait that can be ended early."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: Deferred[None] | None = None

    def begin(self, delay_s: float) -> Deferred[None]:
        """Begin to wait; fires after *delay_s*, or when `end` is called."""
        if delay_s <= 0:
            return succeed(None)
        waiting: Deferred[None] = Deferred()
        self._waiting = waiting
        call = self._clock.callLater(delay_s, self.end)
        return waiting.addCallback(lambda _: call.cancel() if call.active() else None)

    def end(self) -> None:
        """End the wait, if there is one."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.callback(None)


class Throttle:
    """Bounds how fast all compactions together read and write."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._free_s = 0.0

    def delay_s(self, io_bytes: int, bytes_per_second: float) -> float:
        """Return how many seconds to wait after reading and writing *io_bytes*."""
        now_s = self._clock.seconds()
        self._free_s = max(self._free_s, now_s) + io_bytes / max(bytes_per_second, 1)
        return self._free_s - now_s
