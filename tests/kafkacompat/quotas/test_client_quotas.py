"""Quotas in force: resolved once, changed at once, and bounded whatever client ids there are."""

from __future__ import annotations

import pytest

from kafkacompat.metadata.client_entities import ClientConfig, Entity, make_entity
from kafkacompat.quotas import client_quotas, client_rates
from kafkacompat.quotas.client_quotas import ClientQuotas, ClientUses
from kafkacompat.quotas.client_rates import LimitedRate, UseTable, shorten_key
from kafkacompat.quotas.rates import QuotaWindows

WINDOWS = QuotaWindows(11, 1000)
NOW_MS = 1_700_000_000_000
ANY_CLIENT = make_entity([("client-id", None)])


def make_quotas(**values: float) -> ClientQuotas:
    """Quotas of every client id."""
    quotas = ClientQuotas(WINDOWS, WINDOWS)
    quotas.update({ANY_CLIENT: ClientConfig(values)})
    return quotas


def find(quotas: ClientQuotas, client_id: str = "c", user: str = "u") -> ClientUses:
    uses = quotas.find_uses(user, client_id, NOW_MS)
    assert uses is not None
    return uses


def produce(quotas: ClientQuotas, client_id: str = "c") -> LimitedRate:
    rate = find(quotas, client_id).produce
    assert rate is not None
    return rate


def test_without_quotas_nothing_is_active() -> None:
    quotas = ClientQuotas()
    assert not quotas.active
    quotas.update({make_entity([("ip", None)]): ClientConfig({"connection_creation_rate": 1.0})})
    assert not quotas.active
    quotas.update({ANY_CLIENT: ClientConfig({"producer_byte_rate": 1.0})})
    assert quotas.active
    quotas.update({})
    assert not quotas.active


def test_a_client_is_resolved_once() -> None:
    quotas = make_quotas(producer_byte_rate=100, consumer_byte_rate=200)
    uses = find(quotas)
    assert find(quotas) is uses
    assert (uses.produce and uses.produce.limit, uses.fetch and uses.fetch.limit) == (100, 200)
    assert uses.request is None
    assert uses.mutation is None


def test_a_client_without_quotas_is_remembered_too() -> None:
    quotas = ClientQuotas(WINDOWS, WINDOWS)
    quotas.update({make_entity([("client-id", "other")]): ClientConfig({"producer_byte_rate": 1.0})})
    assert quotas.find_uses("u", "c", NOW_MS) is None
    assert quotas._resolved == {("u", "c"): None}


def test_a_change_counts_at_once_with_what_was_used_before() -> None:
    quotas = make_quotas(producer_byte_rate=1000)
    assert produce(quotas).record(5000, NOW_MS) == 0
    quotas.update({ANY_CLIENT: ClientConfig({"producer_byte_rate": 100.0})})
    assert produce(quotas).record(0, NOW_MS) == 40_000
    quotas.update({ANY_CLIENT: ClientConfig({"producer_byte_rate": 10_000.0})})
    assert produce(quotas).record(0, NOW_MS) == 0
    quotas.update({make_entity([("client-id", "other")]): ClientConfig({"producer_byte_rate": 1.0})})
    assert quotas.find_uses("u", "c", NOW_MS) is None


def test_request_time_is_throttled_for_one_window_at_most() -> None:
    rate = find(make_quotas(request_percentage=1)).request
    assert rate is not None
    assert rate.record(1000, NOW_MS) == 1000


def test_bytes_are_throttled_without_a_bound() -> None:
    assert produce(make_quotas(producer_byte_rate=1)).record(1_000_000, NOW_MS) == 999_990_000


def test_invented_client_ids_do_not_grow_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_rates, "MOST_RATES", 100)
    monkeypatch.setattr(client_quotas, "MOST_RESOLVED", 100)
    quotas = make_quotas(producer_byte_rate=1000, controller_mutation_rate=5)
    for number in range(1000):
        uses = find(quotas, f"invented-{number}")
        assert uses.produce is not None
        assert uses.mutation is not None
        uses.produce.record(1, NOW_MS)
        uses.mutation.record(1, NOW_MS)
    assert len(quotas._produce) <= 100
    assert len(quotas._mutation) <= 100
    assert len(quotas._resolved) <= 100


def test_long_client_ids_are_kept_as_hashes_and_not_resolved_in_memory() -> None:
    quotas = make_quotas(producer_byte_rate=1000)
    long_id = "x" * 32_000
    produce(quotas, long_id).record(20_000, NOW_MS)
    assert produce(quotas, long_id).record(0, NOW_MS) == 10_000
    assert produce(quotas, long_id + "y").record(0, NOW_MS) == 0
    assert quotas._resolved == {}
    assert all(isinstance(key, bytes) for key in quotas._produce._uses)


def test_keys_differ_where_their_texts_do() -> None:
    keys = [("a" * 200, "b" * 200), ("a" * 199, "a" + "b" * 200), ("\udcff" * 300, ""), ("", "\udcff" * 300)]
    assert len({shorten_key(key) for key in keys}) == len(keys)


def test_room_is_made_among_the_idle_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_rates, "MOST_RATES", 4)
    forgotten: list[None] = []
    table = UseTable(lambda: LimitedRate(WINDOWS), lambda: forgotten.append(None))
    for name, used_ms in (("old", 0), ("older", -1), ("busy", 20_000), ("busiest", 20_001)):
        table.find((name,), 1, NOW_MS + used_ms).record(1, NOW_MS + used_ms)
    table.find(("new",), 1, NOW_MS + 20_002)
    assert [key[0] for key in table._uses if isinstance(key, tuple)] == ["busy", "busiest", "new"]
    assert len(forgotten) == 1


def test_a_client_that_is_busy_keeps_its_rate_beside_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_rates, "MOST_RATES", 100)
    quotas = make_quotas(producer_byte_rate=1)
    for number in range(1000):
        produce(quotas, f"invented-{number}").record(1, NOW_MS + number)
        produce(quotas, "busy").record(1, NOW_MS + number)
    assert produce(quotas, "busy").measure(NOW_MS + 999) > 90


def test_only_quotas_of_clients_are_taken_over() -> None:
    entity: Entity = make_entity([("ip", "10.0.0.1")])
    quotas = ClientQuotas(WINDOWS, WINDOWS)
    quotas.update({entity: ClientConfig({"connection_creation_rate": 1.0, "producer_byte_rate": 1.0})})
    assert not quotas.active
