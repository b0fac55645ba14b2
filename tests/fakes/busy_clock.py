"""A reactor on which everything takes time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kafkacompat.timers import TURN_SECONDS

LOOKS_A_TURN = 4


class Call:
    """A call to come."""

    def __init__(self, call: Callable[[], object], delay: float) -> None:
        self.call = call
        self.delay = delay
        self._is_active = True

    def active(self) -> bool:
        return self._is_active

    def cancel(self) -> None:
        self._is_active = False

    def make(self) -> None:
        if self._is_active:
            self._is_active = False
            self.call()


class BusyClock:
    """Each look at the time takes a quarter of a turn; delayed calls run in the next `turn`."""

    def __init__(self) -> None:
        self._now = 0.0
        self._later: list[Call] = []

    def seconds(self) -> float:
        self._now += TURN_SECONDS * 1.01 / LOOKS_A_TURN
        return self._now

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> Any:
        self._later.append(Call(partial(callable, *args, **kwargs), delay))
        return self._later[-1]

    def turn(self) -> bool:
        """Run the calls without a delay, or the delayed ones if there are no others; False without any call."""
        calls = [call for call in self._later if not call.delay] or self._later
        self._later = [call for call in self._later if call not in calls]
        for call in calls:
            call.make()
        return bool(calls)

    def turns(self) -> int:
        """Make turns until there is nothing to do, and count them."""
        count = 0
        while self.turn():
            count += 1
        return count
