"""The throttle of replication, on a clock."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock

from kafkacompat.partitions.replication_quota import RateWindow, ReplicationQuota


def make_quota(clock: Clock, rate: int = 1000) -> ReplicationQuota:
    return ReplicationQuota(1, RateWindow(clock, 11, 1000), rate)


def test_bytes_are_spread_over_the_time_since_the_oldest_sample() -> None:
    clock = Clock()
    window = RateWindow(clock, 3, 1000)
    assert window.bytes_per_second() == 0
    window.record(500)
    window.record(500)
    assert window.bytes_per_second() == 1000  # one whole sample at least
    clock.advance(2)
    assert window.bytes_per_second() == 500
    window.record(1000)
    clock.advance(0.5)
    assert window.bytes_per_second() == 800


def test_old_samples_do_not_count() -> None:
    clock = Clock()
    window = RateWindow(clock, 3, 1000)
    window.record(9000)
    clock.advance(3)
    assert window.bytes_per_second() == 0


@pytest.mark.parametrize(
    ("replicas", "throttled"),
    [
        ((), []),
        (("*",), [0, 1, 2]),
        (("0:1", "1:2", "2:1"), [0, 2]),
        (("0:2",), []),
    ],
)
def test_the_replicas_of_this_broker_are_throttled(replicas: tuple[str, ...], throttled: list[int]) -> None:
    quota = make_quota(Clock())
    quota.set_throttled("t", ("1:1",))
    quota.set_throttled("t", replicas)
    assert [index for index in range(3) if quota.is_throttled("t", index)] == throttled
    assert not quota.is_throttled("other", 0)


def test_only_throttled_partitions_count() -> None:
    clock = Clock()
    quota = make_quota(clock)
    quota.set_throttled("t", ("0:1",))
    quota.record("t", 1, 5000)
    quota.record("other", 0, 5000)
    assert not quota.is_exceeded()
    quota.record("t", 0, 5000)
    assert quota.is_exceeded()
    clock.advance(5)
    assert not quota.is_exceeded()


def test_without_a_rate_nothing_pauses() -> None:
    quota = ReplicationQuota(1, RateWindow(Clock(), 11, 1000))
    quota.set_throttled("t", ("*",))
    quota.record("t", 0, 1 << 40)
    assert not quota.is_exceeded()
    quota.rate = 1000
    assert quota.is_exceeded()
