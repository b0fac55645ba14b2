"""Histograms: every duration is in the bucket of its size, and quantiles are right within a bucket."""

from __future__ import annotations

from random import Random

import pytest

from kafkacompat.metrics.histogram import (
    BUCKETS,
    Histogram,
    add_counts,
    find_bound_s,
    find_quantile_s,
    list_cumulative,
)
from kafkacompat.metrics.recent import SPAN_S, RecentCounts


@pytest.mark.parametrize("seconds", [0.0, 1e-7, 1e-6, 0.000_4, 0.01, 0.999, 7.5, 3600.0, 2**31 / 1000])
def test_a_duration_is_between_the_bounds_of_its_bucket(seconds: float) -> None:
    histogram = Histogram()
    histogram.record(seconds)
    bucket = histogram.counts.index(1)
    assert find_bound_s(bucket - 1) <= seconds + 1e-12 < find_bound_s(bucket) + 1e-9
    assert histogram.sum_s == seconds and histogram.count == 1


def test_a_clock_that_goes_back_does_no_harm() -> None:
    histogram = Histogram()
    histogram.record(-5.0)
    assert (histogram.counts[0], histogram.sum_s) == (1, 0)


def test_quantiles_are_off_by_a_bucket_at_most() -> None:
    rng, histogram = Random(1), Histogram()
    durations = sorted(rng.expovariate(100) for _ in range(10_000))
    for duration in durations:
        histogram.record(duration)
    for quantile in (0.5, 0.75, 0.95, 0.99, 0.999):
        exact = durations[int(quantile * len(durations)) - 1]
        assert find_quantile_s(histogram.counts, quantile) == pytest.approx(exact, rel=0.19)


def test_no_durations_and_zeros() -> None:
    assert find_quantile_s([0] * BUCKETS, 0.99) == 0
    assert find_quantile_s(add_counts([], zeros=5), 0.99) == 0
    assert add_counts([Histogram(), Histogram()], zeros=2)[0] == 2


def test_cumulative_counts_are_those_up_to_a_bound() -> None:
    histogram = Histogram()
    for seconds in (0.000_01, 0.000_1, 0.002, 0.5):
        histogram.record(seconds)
    cumulative = dict(list_cumulative(histogram.counts, (6, 10, 20)))
    assert list(cumulative.values()) == [1, 2, 4]
    assert list(cumulative) == pytest.approx([63e-6, 1023e-6, 1.048575])


def test_recent_counts_forget_what_is_older_than_the_span() -> None:
    recent = RecentCounts()
    assert recent.since_earlier("a", [5], 0.0) == [5]
    assert recent.since_earlier("a", [6], SPAN_S / 2) == [6]
    assert recent.since_earlier("a", [8], SPAN_S) == [8]
    # From now on the scrape at half of the span is the base, then the one at the span.
    assert recent.since_earlier("a", [9], SPAN_S * 1.5) == [3]
    assert recent.since_earlier("a", [9], SPAN_S * 2) == [1]
    assert recent.since_earlier("a", [9], SPAN_S * 10) == [0]
    assert recent.since_earlier("b", [1], SPAN_S * 10) == [1]


def test_many_scrapers_do_not_make_the_memory_of_counts_long() -> None:
    recent = RecentCounts()
    for number in range(10_000):
        recent.since_earlier("a", [number], number * 0.01)
    assert len(recent._seen["a"]) < 10
