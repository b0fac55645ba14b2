"""How long to wait before the next attempt."""

from __future__ import annotations

from random import Random

FACTOR = 2
JITTER = 0.2
"""Each wait is up to this share shorter or longer, so that brokers do not all connect in the same moment."""


class Backoff:
    """Waits that double with each failure, from *initial_s* to *max_s*, each with jitter from *rng*."""

    def __init__(self, initial_s: float, max_s: float, rng: Random) -> None:
        self._initial_s = initial_s
        self._max_s = max_s
        self._rng = rng
        self._wait_s = initial_s

    def next_s(self) -> float:
        """Return the wait after one more failure."""
        wait_s = self._wait_s
        self._wait_s = min(wait_s * FACTOR, self._max_s)
        return wait_s * self._rng.uniform(1 - JITTER, 1 + JITTER)

    def reset(self) -> None:
        """Begin again, after a success."""
        self._wait_s = self._initial_s
