"""The token bucket of a share, and the meters that use it."""

from __future__ import annotations

import pytest

from kafkacompat.tenancy.traffic.bucket import MAX_WAIT_MS, ShareBucket
from kafkacompat.tenancy.traffic.metering import Flow, InstanceTraffic
from kafkacompat.tenancy.traffic.shared import Usage


def test_one_interval_may_be_used_at_once_and_then_the_share() -> None:
    bucket = ShareBucket(1000, 1000, 0)
    assert bucket.take(1000, 0) == 0
    assert bucket.find_wait_ms(0) == 0
    assert bucket.take(500, 0) == -500
    assert bucket.find_wait_ms(0) == 500
    assert bucket.find_wait_ms(499) == 1
    assert bucket.find_wait_ms(500) == 0
    assert bucket.refill(10_000) == 1000


def test_a_smaller_share_loses_tokens_and_a_larger_one_gets_none() -> None:
    bucket = ShareBucket(1000, 1000, 0)
    bucket.set_share(100, 0)
    assert bucket.refill(0) == 100
    bucket.set_share(1000, 0)
    assert bucket.refill(0) == 100
    assert bucket.refill(500) == 600


def test_a_new_share_counts_from_its_moment() -> None:
    bucket = ShareBucket(100, 1000, 0)
    bucket.take(200, 0)
    bucket.set_share(1000, 500)
    assert bucket.refill(500) == -50
    assert bucket.find_wait_ms(500) == 50


def test_without_a_share_clients_wait_for_one() -> None:
    bucket = ShareBucket(0, 1000, 0)
    assert bucket.find_wait_ms(0) == 0
    bucket.take(1, 0)
    assert bucket.find_wait_ms(10**9) == MAX_WAIT_MS


def make_flow(share: float | None, calls: list[None] | None = None) -> Flow:
    flow = Flow(1000, 0, lambda: None if calls is None else calls.append(None))
    flow.bucket = None if share is None else ShareBucket(share, 1000, 0)
    return flow


def test_a_direction_without_a_limit_only_counts() -> None:
    flow = make_flow(None)
    flow.charge(10**9, 0)
    assert (flow.total_bytes, flow.find_throttle_ms(0), flow.most_bytes) == (10**9, 0, None)


def test_a_throttle_time_is_one_interval_at_most() -> None:
    flow = make_flow(100)
    flow.charge(10_000, 0)
    assert flow.find_throttle_ms(0) == 1000
    assert flow.most_bytes == 100


def test_a_measurement_says_what_the_last_interval_used_and_what_is_held_back() -> None:
    calls: list[None] = []
    flow = make_flow(100, calls)
    assert not flow.is_used
    flow.charge(50, 0)
    assert flow.is_used and flow.measure(500) == Usage(100, 0, 100)
    flow.begin_measurement(500)
    flow.charge(300, 500)
    flow.charge(300, 500)
    assert len(calls) == 1
    assert flow.measure(1000) == Usage(650, 450, 100)
    flow.begin_measurement(1000)
    assert flow.is_used
    flow.begin_measurement(1500)
    assert flow.measure(1700) == Usage(0, 380, 100)
    flow.begin_measurement(2000)
    assert flow.measure(6500).held_back == 1.0
    flow.begin_measurement(6500)
    assert not flow.is_used


def test_a_little_use_is_remembered_for_some_seconds() -> None:
    flow = make_flow(100)
    flow.charge(50, 0)
    assert flow.measure(1000, most_remembered=10).used == 50
    flow.forget_use(1000)
    assert [flow.measure(2000, most_remembered=10).used for _ in range(3)] == pytest.approx([8, 6.4, 5.12])


def test_the_use_before_a_limit_does_not_count() -> None:
    flow = make_flow(100)
    flow.charge(50, 0)
    flow.forget_use(1000)
    assert not flow.is_used and flow.measure(2000).used == 0


def test_an_instance_has_counters_of_both_directions() -> None:
    traffic = InstanceTraffic(1000, 0, lambda: None)
    traffic.produced.charge(10, 0)
    traffic.fetched.charge(20, 0)
    traffic.fetched.throttled_ms += 5
    assert (traffic.produced.total_bytes, traffic.fetched.total_bytes, traffic.throttled_ms) == (10, 20, 5)
