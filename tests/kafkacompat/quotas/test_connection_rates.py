"""New connections: those that wait for their turn, and those that are turned away."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kafkacompat.metadata.client_entities import ClientConfig, make_entity
from kafkacompat.quotas import client_rates
from kafkacompat.quotas.connection_rates import (
    ADMITTED,
    UNLIMITED,
    ConnectionAdmission,
    ConnectionLimit,
    ConnectionRates,
    normalize_address,
)
from kafkacompat.quotas.rates import QuotaWindows

NOW_MS = 1_700_000_000_000


class Door:
    """The rates of a broker whose limits a test sets."""

    def __init__(self, of_listener: int = UNLIMITED, of_broker: int = UNLIMITED, **addresses: float) -> None:
        self.limits = {"A": ConnectionLimit(of_listener, of_broker), "B": ConnectionLimit(UNLIMITED, of_broker)}
        self.rates = ConnectionRates(QuotaWindows(11, 1000), self.limits.__getitem__)
        self.set_addresses({None if name == "default" else name: rate for name, rate in addresses.items()})
        self.now_ms = NOW_MS

    def set_addresses(self, rates: dict[str | None, float]) -> None:
        self.rates.update(
            {
                make_entity([("ip", name)]): ClientConfig({"connection_creation_rate": rate})
                for name, rate in rates.items()
            }
        )

    def connect(self, count: int = 1, listener: str = "A", address: str = "10.0.0.1") -> list[ConnectionAdmission]:
        return [self.rates.admit(listener, address, self.now_ms) for _ in range(count)]


def test_without_limits_every_connection_is_admitted() -> None:
    assert set(Door().connect(1000)) == {ADMITTED}


def test_a_listener_serves_its_connections_at_its_rate() -> None:
    door = Door(of_listener=10)
    assert set(door.connect(100)) == {ADMITTED}
    delays = [admission.delay_ms for admission in door.connect(30)]
    assert delays[0] == 100
    assert delays == sorted(delays)
    # Each waits for the one before, at most one window.
    assert 0 < max(later - earlier for earlier, later in pairwise(delays)) <= 1000
    # Ten of them in the first second. Then the burst before counts as if it were spread over ten seconds, not eleven.
    assert (delays[9], delays[-1]) == (1000, 12_000)
    assert set(door.connect(5, "B")) == {ADMITTED}


def test_the_broker_has_one_rate_for_all_its_listeners() -> None:
    door = Door(of_broker=10)
    door.connect(100, "A")
    assert door.connect(1, "B")[0].delay_ms == 100


def test_a_protected_listener_does_not_count_for_the_broker() -> None:
    door = Door(of_broker=10)
    door.limits["A"] = ConnectionLimit(UNLIMITED, UNLIMITED)
    door.connect(1000, "A")
    assert set(door.connect(100, "B")) == {ADMITTED}


def test_a_limit_that_changes_counts_at_once() -> None:
    door = Door(of_listener=1000)
    door.connect(100)
    door.limits["A"] = ConnectionLimit(5, UNLIMITED)
    assert door.connect(1)[0].delay_ms == 1000
    door.limits["A"] = ConnectionLimit(UNLIMITED, UNLIMITED)
    assert door.connect(1) == [ADMITTED]


def test_an_address_that_makes_too_many_is_turned_away_and_does_not_count() -> None:
    door = Door(default=2)
    assert set(door.connect(20)) == {ADMITTED}
    # (2.1 - 2) / 2 * 10 s
    assert door.connect(3) == [ConnectionAdmission(500, closes=True)] * 3
    assert set(door.connect(20, address="10.0.0.2")) == {ADMITTED}
    door.now_ms += 11_000
    assert door.connect() == [ADMITTED]


def test_an_address_that_is_turned_away_does_not_count_for_its_listener() -> None:
    door = Door(of_listener=10, default=1)
    door.connect(10)
    assert all(admission.closes for admission in door.connect(1000))
    assert set(door.connect(10, address="10.0.0.2")) == {ADMITTED}


def test_an_address_with_a_quota_of_its_own_has_not_the_default() -> None:
    door = Door()
    door.set_addresses({None: 1, "10.0.0.1": 5, "2001:db8::1": 3})
    assert set(door.connect(50)) == {ADMITTED}
    assert door.connect()[0].closes
    # The same address, written in another way.
    assert set(door.connect(30, address="2001:0db8:0:0::1")) == {ADMITTED}
    assert door.connect(1, address="2001:db8::1")[0].closes
    assert door.connect(1, address="::ffff:10.0.0.1")[0].closes
    door.set_addresses({})
    assert door.connect() == [ADMITTED]


def test_addresses_without_end_do_not_grow_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_rates, "MOST_RATES", 100)
    door = Door(default=1)
    for number in range(1000):
        door.connect(1, address=f"2001:db8::{number:x}")
    assert len(door.rates._addresses) <= 100


@pytest.mark.parametrize(
    ("text", "normal"),
    [("10.0.0.1", "10.0.0.1"), ("::FFFF:10.0.0.1", "10.0.0.1"), ("fe80::1%eth0", "fe80::1"), ("/tmp/x", "/tmp/x")],
)
def test_one_text_for_each_address(text: str, normal: str) -> None:
    assert normalize_address(text) == normal
