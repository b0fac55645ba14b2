"""Measuring the turns of Twisted's epoll reactor: the time from the end of one wait for events to the begin of the next."""

from __future__ import annotations

import time
from typing import Any

from kafkacompat.metrics.turns import ReactorTurns


class TimedPoller:
    """The reactor's epoll object, with a measured `poll`."""

    def __init__(self, poller: Any, turns: ReactorTurns) -> None:
        self.register, self.unregister, self.modify = poller.register, poller.unregister, poller.modify
        self.fileno, self.close = poller.fileno, poller.close
        self._poll = poller.poll
        self._lengths = turns.lengths
        self._woken_s = time.monotonic()

    def poll(self, timeout: float, maxevents: int) -> Any:
        """Wait for events, as epoll does."""
        self._lengths.record(time.monotonic() - self._woken_s)
        try:
            return self._poll(timeout, maxevents)
        finally:
            self._woken_s = time.monotonic()


def measure_turns(reactor: Any) -> ReactorTurns | None:
    """Measure the reactor's turns from now on; return None for a reactor that is not on epoll."""
    poller = getattr(reactor, "_poller", None)
    if poller is None:
        return None
    turns = ReactorTurns(reactor.seconds())
    reactor._poller = TimedPoller(poller, turns)
    return turns
