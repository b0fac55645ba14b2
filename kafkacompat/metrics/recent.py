"""Quantiles of the last minutes, from counts that only grow: the difference to an earlier scrape."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Hashable, Sequence
from operator import sub

SPAN_S = 60.0
"""The least time that quantiles cover, unless the first scrape was more recent."""


class RecentCounts:
    """Remembers the counts of earlier scrapes, as far back as `SPAN_S` needs."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, deque[tuple[float, Sequence[int]]]] = {}

    def since_earlier(self, key: Hashable, counts: Sequence[int], now_s: float) -> list[int]:
        """Return by how much *counts* have grown since a scrape that is at least `SPAN_S` ago, else since the oldest one."""
        seen = self._seen.setdefault(key, deque([(now_s, [0] * len(counts))]))
        while len(seen) > 1 and now_s - seen[1][0] >= SPAN_S:
            seen.popleft()
        growth = list(map(sub, counts, seen[0][1]))
        # Many scrapers must not make this long.
        if now_s - seen[-1][0] >= SPAN_S / 4:
            seen.append((now_s, array("q", counts)))
        return growth
