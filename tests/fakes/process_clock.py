"""The clock of one process: when the process is killed, none of its calls is made any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkacompat.timers import Clock, DelayedCall


class ProcessClock:
    """Passes calls on to a shared *clock*, and forgets them at `kill`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._killed = False

    def seconds(self) -> float:
        """See Clock."""
        return self._clock.seconds()

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> DelayedCall:
        """See Clock."""
        return self._clock.callLater(delay, self._call, callable, args, kwargs)

    def _call(self, callable: Callable[..., object], args: Any, kwargs: Any) -> None:
        if not self._killed:
            callable(*args, **kwargs)

    def kill(self) -> None:
        """Make no call any more."""
        self._killed = True
