"""The reactor as one broker uses it: when the broker is killed, none of its calls is made any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from kafkacompat.timers import DelayedCall, SteadyClock


class ProcessReactor(SteadyClock):
    """Passes everything on to a shared *reactor*, and cancels its own timers at `kill`."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._timers: WeakSet[DelayedCall] = WeakSet()
        self._is_killed = False

    def __getattr__(self, name: str) -> Any:
        """Return what a reactor has besides its clock."""
        return getattr(self._reactor, name)

    def seconds(self) -> float:
        """See Clock."""
        return float(self._reactor.seconds())

    def time_of_day(self) -> float:
        """See SteadyClock."""
        return float(self._reactor.time_of_day())

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> DelayedCall:
        """See Clock; after `kill` the call is not made."""
        timer: DelayedCall = self._reactor.callLater(delay, callable, *args, **kwargs)
        if self._is_killed:
            timer.cancel()
        else:
            self._timers.add(timer)
        return timer

    @property
    def timers(self) -> list[DelayedCall]:
        """The calls that are still to come."""
        return [timer for timer in self._timers if timer.active()]

    def kill(self) -> None:
        """Cancel all calls; later ones are not made."""
        self._is_killed = True
        for timer in self.timers:
            timer.cancel()
