"""Clients of an instance that has used up its share: answered, and not read until the share has come back."""

from __future__ import annotations

from typing import Any

from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.quotas.limits import QuotaKind
from kafkacompat.quotas.request_meter import RequestMeter, begin_request
from kafkacompat.tenancy.traffic.bucket import ShareBucket
from kafkacompat.tenancy.traffic.metering import InstanceTraffic
from tests.kafkacompat.server.test_throttling import ThrottledWorld

SHARE = 1000
INTERVAL_MS = 1000
FETCH, METADATA, ENVELOPE = 1, 3, 58


class Tenant:
    """An instance with this share of either direction."""

    def __init__(self, now_ms: int, share: float | None = SHARE) -> None:
        self.traffic = InstanceTraffic(INTERVAL_MS, now_ms, lambda: None)
        if share is not None:
            self.traffic.produced.bucket = ShareBucket(share, INTERVAL_MS, now_ms)
            self.traffic.fetched.bucket = ShareBucket(share, INTERVAL_MS, now_ms)

    @property
    def is_metered(self) -> bool:
        return self.traffic.is_limited


class TenantWorld(ThrottledWorld):
    """A connection of an instance's client; client quotas limit others."""

    def __init__(self, share: float | None = SHARE, **quotas: float) -> None:
        super().__init__(**quotas)
        tenant: Any = Tenant(int(self.clock.seconds() * 1000), share)
        self.tenant = self.connection.tenant = tenant
        self.traffic: InstanceTraffic = self.tenant.traffic


def test_a_client_is_told_of_one_interval_and_waits_until_nothing_is_missing() -> None:
    world = TenantWorld()
    world.produce(1, 5000 - 100)
    assert world.throttle_times() == [INTERVAL_MS]
    for _ in range(3):
        world.clock.advance(1)
        assert not world.transport.reading
    world.clock.advance(1)
    assert world.transport.reading
    assert world.traffic.produced.total_bytes > 4900
    assert 3900 < world.traffic.throttled_ms < 4100


def test_a_larger_share_lets_a_waiting_client_go_on_within_an_interval() -> None:
    world = TenantWorld()
    world.produce(1, 20_000)
    assert world.traffic.produced.bucket is not None
    world.traffic.produced.bucket.set_share(1_000_000, int(world.clock.seconds() * 1000))
    world.clock.advance(1.001)
    assert world.transport.reading


def test_a_request_without_a_response_counts_and_mutes() -> None:
    world = TenantWorld()
    world.produce(1, 2000, None)
    assert world.throttle_times() == [] and not world.transport.reading


def test_clients_of_one_instance_share_its_share() -> None:
    first, second = TenantWorld(), TenantWorld()
    second.connection.tenant = first.tenant
    first.produce(1, 900)
    assert first.transport.reading
    second.produce(1, 900)
    assert not second.transport.reading and first.transport.reading


def test_without_a_limit_an_instance_is_not_charged() -> None:
    world = TenantWorld(None)
    world.produce(1, 20_000)
    assert world.throttle_times() == [0] and world.transport.reading
    assert world.traffic.produced.total_bytes == 0


def test_a_quota_of_the_client_counts_beside_the_share_of_its_instance() -> None:
    world = TenantWorld(10**9, producer_byte_rate=1000)
    world.produce(1, 20_000)
    assert world.throttle_times()[0] > 9000
    assert world.quotas.throttled[QuotaKind.PRODUCE].total.count == 1
    assert world.traffic.throttled_ms == 0


def test_a_wait_for_the_share_is_none_of_a_quota() -> None:
    world = TenantWorld(producer_byte_rate=10**9)
    world.produce(1, 20_000)
    assert not world.transport.reading
    assert world.quotas.throttled[QuotaKind.PRODUCE].total.count == 0


def begin(traffic: InstanceTraffic, api_key: int = FETCH, now: float = 0.0) -> RequestMeter | None:
    return begin_request(ClientQuotas(), api_key, 12, "u", "c", now, traffic)


def test_a_large_response_is_sent_and_the_next_ones_are_empty_until_nothing_is_missing() -> None:
    traffic = Tenant(0).traffic
    meter = begin(traffic)
    assert meter is not None and meter.max_fetch_bytes == SHARE
    assert not meter.charge_fetch(3000, 0.0)
    assert meter.finish(50, True, 0.0) == 1000 and meter.held_by is traffic.fetched
    waiting = begin(traffic)
    assert waiting is not None and waiting.charge_fetch(100, 1.0)
    assert waiting.finish(50, True, 1.0) == 1000
    assert traffic.fetched.total_bytes == 3000 and traffic.produced.total_bytes == 0
    later = begin(traffic)
    assert later is not None and not later.charge_fetch(100, 2.0)
    assert later.finish(50, True, 2.0) > 0
    assert traffic.fetched.total_bytes == 3100


def test_only_produce_and_fetch_are_metered_for_an_instance() -> None:
    traffic = Tenant(0).traffic
    assert begin(traffic, METADATA) is None and begin(traffic, ENVELOPE) is None


def test_a_response_that_a_quota_withholds_is_not_charged_to_the_instance() -> None:
    traffic = Tenant(0).traffic
    world = ThrottledWorld(consumer_byte_rate=1)
    meter = begin_request(world.quotas, FETCH, 12, "u", "c", 0.0, traffic)
    assert meter is not None and meter.max_fetch_bytes == 10
    assert not meter.charge_fetch(10, 0.0)
    assert meter.charge_fetch(10, 0.0)
    assert traffic.fetched.total_bytes == 10
