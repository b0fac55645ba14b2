"""Quantiles and means of the last minutes, from counts that only grow: the difference to an earlier scrape."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Hashable, Sequence
from operator import sub

from kafkacompat.metrics.throttling import ThrottleFigures

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

    def keep(self, existing: Collection[Hashable]) -> None:
        """Forget all other keys."""
        for key in [key for key in self._seen if key not in existing]:
            del self._seen[key]


class RecentMean(RecentCounts):
    """The means of recent throttle times."""

    def find(self, key: Hashable, figures: ThrottleFigures, now_s: float) -> float:
        """Return the mean in milliseconds, 0 if there was none."""
        count, total_ms = self.since_earlier(key, (figures.count, figures.total_ms), now_s)
        return total_ms / count if count else 0.0
