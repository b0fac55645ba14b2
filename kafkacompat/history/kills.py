"""The faults of a run: broker kills at random moments, or the plan of another program."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Protocol


class Disturbance(Protocol):
    """Faults that happen while the clients of a run are at work."""

    def begin(self) -> None:
        """Begin: all clients are at work."""

    def advance(self) -> None:
        """Make the faults that are due; the run calls it some times a second."""

    @property
    def is_over(self) -> bool:
        """Whether no fault is left, and the brokers serve."""


class BrokerKills:
    """A number of kills at random moments, *seconds* / *kills* apart on average. ``restart`` kills a broker and waits for it."""

    def __init__(self, kills: int, seconds: float, random: Random, restart: Callable[[], None]) -> None:
        self._left = kills
        self._average_life_s = seconds / max(kills, 1)
        self._random = random
        self._restart = restart
        self._next_s = 0.0

    def begin(self) -> None:
        """Choose the first moment."""
        self._next_s = random_time_after(self._random, self._average_life_s)

    def advance(self) -> None:
        """Kill and restart a broker if it is time."""
        if self._left and time.monotonic() >= self._next_s:
            self._left -= 1
            self._restart()
            self._next_s = random_time_after(self._random, self._average_life_s)

    @property
    def is_over(self) -> bool:
        """Whether all kills have been made."""
        return self._left == 0


def random_time_after(random: Random, average_s: float) -> float:
    """Return a random monotonic time, *average_s* from now on average."""
    return time.monotonic() + random.uniform(0.1, 1.9) * average_s
