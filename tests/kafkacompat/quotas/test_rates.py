"""Rates over windows and token buckets, with Kafka's figures."""

from __future__ import annotations

import pytest

from kafkacompat.quotas.rates import MAX_THROTTLE_MS, QuotaWindows, SampledRate, TokenBucket

WINDOWS = QuotaWindows(11, 1000)
START_MS = 1_700_000_000_000


def make_rate(*uses: tuple[int, float], windows: QuotaWindows = WINDOWS) -> SampledRate:
    """A rate with these pairs of milliseconds after the start and units."""
    rate = SampledRate(windows)
    for after_ms, amount in uses:
        rate.record(amount, START_MS + after_ms)
    return rate


def test_the_first_use_is_spread_over_all_but_one_window() -> None:
    assert make_rate((0, 5000)).measure(START_MS) == 500
    assert make_rate((0, 5000)).measure(START_MS + 500) == pytest.approx(5000 / 10.5)
    assert make_rate((0, 5000)).measure(START_MS + 1000) == 500
    assert make_rate((0, 5000)).measure(START_MS + 10_000) == 500


def test_uses_within_one_window_share_a_sample_that_ends_with_the_last() -> None:
    rate = make_rate((0, 1000), (999, 1000))
    assert rate.measure(START_MS + 11_998) == pytest.approx(2000 / 11.998)
    assert rate.measure(START_MS + 11_999) == 0


def test_samples_that_overlap_the_windows_count_as_a_whole() -> None:
    rate = make_rate(*((second * 1000, 100) for second in range(12)))
    # The sample of second 0 is forgotten, as its last use is 11 s ago.
    assert rate.measure(START_MS + 11_000) == 1100 / 10
    assert rate.measure(START_MS + 11_500) == pytest.approx(1100 / 10.5)


def test_a_rate_goes_on_for_any_time_in_a_bounded_number_of_samples() -> None:
    rate = make_rate(*((half * 500, 50) for half in range(1000)))
    assert rate.measure(START_MS + 499_500) == pytest.approx(100, rel=0.1)
    assert len(rate._samples) == 12


@pytest.mark.parametrize(
    ("limit", "used", "throttle_ms"),
    [
        (100, 1000, 0),  # the rate is the limit
        (100, 1001, 10),  # (100.1 - 100) / 100 * 10 s
        (100, 2000, 10_000),
        (100, 100_000, 990_000),
        (3, 31, 333),
        (0.5, 6, 2000),
        (1, 10**15, MAX_THROTTLE_MS),
    ],
)
def test_the_throttle_time_brings_the_rate_back_to_the_limit(limit: float, used: float, throttle_ms: int) -> None:
    assert make_rate((0, used)).find_throttle_ms(limit, START_MS) == throttle_ms


def test_after_the_throttle_time_the_rate_is_the_limit() -> None:
    rate = make_rate((0, 3000), (700, 2000), (1500, 6500))
    throttle_ms = rate.find_throttle_ms(1000, START_MS + 1500)
    assert throttle_ms == 1000
    assert rate.measure(START_MS + 1500) == pytest.approx(11_500 / 10.5)
    assert 11_500 / (10.5 + throttle_ms / 1000) == 1000


def test_what_is_taken_back_does_not_count() -> None:
    rate = make_rate((0, 500), (10, 9000), (10, -9000))
    assert rate.measure(START_MS + 1000) == 50


def test_a_rate_is_idle_when_nothing_is_left() -> None:
    rate = make_rate((0, 500))
    assert not rate.is_idle(START_MS + 10_999)
    assert rate.is_idle(START_MS + 11_000)
    assert rate.measure(START_MS + 11_000) == 0


def test_other_windows() -> None:
    rate = make_rate((0, 900), windows=QuotaWindows(2, 3000))
    assert rate.measure(START_MS) == 300
    assert make_rate((0, 7), windows=QuotaWindows(1, 1000)).measure(START_MS) == 7000  # at least a millisecond


def test_a_bucket_is_full_at_first_and_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(WINDOWS)
    assert bucket.find_throttle_ms(2, START_MS) == 0
    bucket.record(2, 25, START_MS)  # of 22
    assert bucket.find_throttle_ms(2, START_MS) == 1500
    assert bucket.find_throttle_ms(2, START_MS + 1000) == 500
    assert bucket.find_throttle_ms(2, START_MS + 1500) == 0


def test_a_bucket_holds_the_tokens_of_all_windows_at_most() -> None:
    bucket = TokenBucket(WINDOWS)
    bucket.record(2, 1, START_MS)
    assert not bucket.is_full(2, START_MS)
    assert bucket.is_full(2, START_MS + 500)
    bucket.record(2, 23, START_MS + 1_000_000)
    assert bucket.find_throttle_ms(2, START_MS + 1_000_000) == 500


def test_a_bucket_follows_a_new_limit() -> None:
    bucket = TokenBucket(WINDOWS)
    bucket.record(2, 32, START_MS)
    assert bucket.find_throttle_ms(2, START_MS) == 5000
    assert bucket.find_throttle_ms(10, START_MS) == 1000
