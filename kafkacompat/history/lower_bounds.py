"""Lower bounds of an offset over time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate


class LowerBounds:
    """Lower bounds of an offset, from (time, offset) pairs: each bound holds from its time on."""

    def __init__(self, bounds: Iterable[tuple[int, int]]) -> None:
        pairs = sorted(bounds)
        self._times_ns = [time_ns for time_ns, _ in pairs]
        self._offsets = list(accumulate((offset for _, offset in pairs), max))

    def at(self, time_ns: int) -> int:
        """Return the largest bound before a time, -1 if there is none."""
        count = bisect_left(self._times_ns, time_ns)
        return self._offsets[count - 1] if count else -1
