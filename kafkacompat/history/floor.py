"""What an offset is not below."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate


class Floor:
    """What an offset is not below, from when on: made of (time, offset), each of which holds from then on."""

    def __init__(self, told: Iterable[tuple[int, int]]) -> None:
        pairs = sorted(told)
        self._times_ns = [time_ns for time_ns, _ in pairs]
        self._offsets = list(accumulate((offset for _, offset in pairs), max))

    def at(self, time_ns: int) -> int:
        """The floor at a time: -1 if nothing was told before."""
        count = bisect_left(self._times_ns, time_ns)
        return self._offsets[count - 1] if count else -1
