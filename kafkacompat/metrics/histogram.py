"""Durations, counted in buckets whose bounds grow by a quarter of an octave (19 %)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import log2

STEPS = 4
"""Buckets for each doubling."""
OCTAVES = 44
"""2**44 µs are half a year, longer than any request may wait."""
BUCKETS = STEPS * OCTAVES
MICROSECONDS = 1_000_000


def find_bound_s(bucket: int) -> float:
    """Return the upper bound of a bucket in seconds; its lower bound is that of the bucket before."""
    return (2 ** ((bucket + 1) / STEPS) - 1) / MICROSECONDS


class Histogram:
    """``counts`` has the number of durations in each bucket, ``sum_s`` their sum in seconds."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        self.sum_s = 0.0

    def record(self, seconds: float, weight: int = 1) -> None:
        """Count *weight* equal durations; a negative one counts as none, as no clock may stop a request."""
        if seconds < 0:
            seconds = 0.0
        self.counts[int(log2(seconds * 1_000_000 + 1) * 4)] += (
            weight  # MICROSECONDS and STEPS: names take time to look up
        )
        self.sum_s += seconds * weight

    @property
    def count(self) -> int:
        """How many durations were recorded."""
        return sum(self.counts)


def add_counts(histograms: Iterable[Histogram], zeros: int = 0) -> list[int]:
    """Return the counts of all histograms together, and of *zeros* more durations of zero length."""
    counts = [sum(column) for column in zip(*(histogram.counts for histogram in histograms), strict=True)]
    counts = counts or [0] * BUCKETS
    counts[0] += zeros
    return counts


def find_quantile_s(counts: Sequence[int], quantile: float) -> float:
    """Return the duration in seconds below which this share of the durations lies; 0 without any.

    The result is interpolated in its bucket, so it is off by 19 % at most.
    """
    wanted = quantile * sum(counts)
    if not wanted:
        return 0.0
    below = 0
    for bucket, count in enumerate(counts):
        if count and below + count >= wanted:
            lower_s = find_bound_s(bucket - 1)
            return lower_s + (find_bound_s(bucket) - lower_s) * (wanted - below) / count if bucket else 0.0
        below += count
    return find_bound_s(len(counts) - 1)


def list_cumulative(counts: Sequence[int], octaves: Sequence[int]) -> Iterator[tuple[float, int]]:
    """Yield (upper bound in seconds, number of durations up to it) for the bounds of 2**octave µs, in ascending order."""
    totals = list(accumulate(counts))
    for octave in octaves:
        bucket = octave * STEPS - 1
        yield find_bound_s(bucket), totals[bucket]
