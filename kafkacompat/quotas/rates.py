"""What a client uses over time: a rate over sampled windows, and a token bucket, as Apache Kafka computes them.

Kafka compares ``used / length of the windows`` with the limit. The delay is the time that brings the rate back to the limit if
nothing else is used: ``(rate - limit) / limit * length of the windows``.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

MAX_THROTTLE_MS = 2**31 - 1
"""The longest throttle time that a response can carry."""


class QuotaWindows(NamedTuple):
    """A number of windows, and their length."""

    number: int = 11
    length_ms: int = 1000

    @property
    def span_ms(self) -> int:
        """The time after which nothing is left of what a client has used."""
        return self.number * self.length_ms


DEFAULT_WINDOWS = QuotaWindows()


class _Sample:
    """What was used in one window."""

    __slots__ = ("begun_ms", "last_ms", "used")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.begun_ms = self.last_ms = now_ms
        self.used = 0.0


class SampledRate:
    """Units per second over the last windows (Kafka's ``Rate`` of a ``SampledStat``).

    A window begins with the first use after the end of the one before. One window more than configured is kept, as the oldest may
    have begun before the span and overlap it. At least ``number - 1`` whole windows count as elapsed, so that the first bytes after
    a pause are no peak.
    """

    __slots__ = ("_current", "_samples", "_windows", "last_used_ms")

    def __init__(self, windows: QuotaWindows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0
        self.last_used_ms = 0

    def record(self, amount: float, now_ms: int) -> None:
        """Count *amount* as used now; a negative one takes back what was counted."""
        sample = self._find_current(now_ms)
        sample.used += amount
        sample.last_ms = self.last_used_ms = now_ms

    def _find_current(self, now_ms: int) -> _Sample:
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.begun_ms < self._windows.length_ms:
            return sample
        self._current = (self._current + 1) % (self._windows.number + 1)
        if self._current == len(samples):
            samples.append(_Sample(now_ms))
        else:
            samples[self._current].reset(now_ms)
        return samples[self._current]

    def find_throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return the milliseconds after which the rate is down to *limit* again, 0 if it is not above."""
        window_ms = self._measure_window_ms(now_ms)
        rate = self._sum_used() / (window_ms / 1000)
        return 0 if rate <= limit else min(round_half_up((rate - limit) / limit * window_ms), MAX_THROTTLE_MS)

    def measure(self, now_ms: int) -> float:
        """Return the units per second."""
        window_ms = self._measure_window_ms(now_ms)
        return self._sum_used() / (window_ms / 1000)

    def is_idle(self, now_ms: int) -> bool:
        """Return whether nothing is left of what was used."""
        return now_ms - self.last_used_ms >= self._windows.span_ms

    def _sum_used(self) -> float:
        return sum([sample.used for sample in self._samples])

    def _measure_window_ms(self, now_ms: int) -> int:
        """Forget what is older than the windows, and return the time over which the rest counts."""
        windows, oldest_ms = self._windows, now_ms
        span_ms = windows.span_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= span_ms:
                sample.reset(now_ms)
            elif sample.begun_ms < oldest_ms:
                oldest_ms = sample.begun_ms
        elapsed_ms = now_ms - oldest_ms
        missing = windows.number - 1 - elapsed_ms // windows.length_ms
        return max(elapsed_ms + max(missing, 0) * windows.length_ms, 1)


class TokenBucket:
    """Tokens that come back at the limit's rate, up to those of all windows (KIP-599). It starts full, and may be overdrawn."""

    __slots__ = ("_refilled_ms", "_tokens", "_windows", "last_used_ms")

    def __init__(self, windows: QuotaWindows) -> None:
        self._windows = windows
        self._tokens: float | None = None
        self._refilled_ms = self.last_used_ms = 0

    def record(self, limit: float, amount: float, now_ms: int) -> None:
        """Take *amount* tokens."""
        self._tokens = self._refill(limit, now_ms) - amount
        self.last_used_ms = now_ms

    def find_throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return the milliseconds after which no token is missing, 0 if none is."""
        tokens = self._refill(limit, now_ms)
        return 0 if tokens >= 0 else min(round_half_up(-tokens / limit * 1000), MAX_THROTTLE_MS)

    def is_full(self, limit: float, now_ms: int) -> bool:
        """Return whether the bucket holds as many tokens as a new one."""
        return self._refill(limit, now_ms) >= self._burst(limit)

    def _refill(self, limit: float, now_ms: int) -> float:
        burst = self._burst(limit)
        elapsed_ms, self._refilled_ms = max(now_ms - self._refilled_ms, 0), now_ms
        self._tokens = burst if self._tokens is None else min(burst, self._tokens + limit * elapsed_ms / 1000)
        return self._tokens

    def _burst(self, limit: float) -> float:
        return self._windows.span_ms / 1000 * limit


def round_half_up(value: float) -> int:
    """Round to the nearest whole number, and a half upwards."""
    return floor(value + 0.5)
