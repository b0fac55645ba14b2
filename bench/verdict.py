"""Judges goals by the median and the interquartile range of at least five pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles


@dataclass(frozen=True)
class Spread:
    """The middle of some samples: lower quartile, median, upper quartile."""

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Summarise samples; one alone is its own spread."""
        if len(samples) == 1:
            return cls(samples[0], samples[0], samples[0])
        low, _, high = quantiles(samples, n=4, method="inclusive")
        return cls(low, median(samples), high)


def compute_ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return our figures divided by theirs, pair by pair."""
    return [mine / yours for mine, yours in zip(ours, theirs, strict=True)]


def judge_spread(spread: Spread, bound: float, *, at_least: bool) -> str:
    """Return ``reached`` if the median is on the right side, ``missed`` if all quartiles are on the wrong side."""
    sign = 1 if at_least else -1
    if sign * spread.middle >= sign * bound:
        return "reached"
    best = spread.high if at_least else spread.low
    return "missed" if sign * best < sign * bound else "undecided"
