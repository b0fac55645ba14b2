"""The quota that applies to a client, by Kafka's order of precedence."""

from __future__ import annotations

import math

import pytest

from kafkacompat.metadata.client_entities import ClientConfig, Entity, make_entity
from kafkacompat.quotas.limits import (
    ClientLimit,
    ClientLimits,
    LimitTable,
    QuotaKind,
    build_address_limits,
)


def user(name: str | None) -> Entity:
    return make_entity([("user", name)])


def client(name: str | None) -> Entity:
    return make_entity([("client-id", name)])


def pair(user_name: str | None, client_id: str | None) -> Entity:
    return make_entity([("user", user_name), ("client-id", client_id)])


LEVELS: list[tuple[Entity, tuple[str, str]]] = [
    (pair("u", "c"), ("u", "c")),
    (pair("u", None), ("u", "c")),
    (user("u"), ("u", "")),
    (pair(None, "c"), ("u", "c")),
    (pair(None, None), ("u", "c")),
    (user(None), ("u", "")),
    (client("c"), ("", "c")),
    (client(None), ("", "c")),
]
"""The eight levels with the clients that share the rate, strongest first."""


def make_table(*entities: Entity) -> LimitTable:
    """A table in which each entity's limit is its place, from 1."""
    table = LimitTable()
    for place, entity in enumerate(entities, 1):
        table.add(entity, place)
    return table


@pytest.mark.parametrize("first", range(len(LEVELS)))
def test_the_strongest_level_counts(first: int) -> None:
    table = make_table(*(entity for entity, _ in LEVELS[first:]))
    assert table.find("u", "c") == ClientLimit(LEVELS[first][1], 1)


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_one_level_alone_counts(level: int) -> None:
    entity, scope = LEVELS[level]
    assert make_table(entity).find("u", "c") == ClientLimit(scope, 1)


@pytest.mark.parametrize(
    "entity", [pair("v", "c"), pair("u", "d"), pair("v", None), pair(None, "d"), user("v"), client("d")]
)
def test_the_quotas_of_others_do_not_count(entity: Entity) -> None:
    table = make_table(entity)
    assert table
    assert table.find("u", "c") is None


def test_the_clients_of_a_default_have_rates_of_their_own() -> None:
    table = make_table(client(None))
    assert [limit and limit.scope for limit in (table.find("u", "c"), table.find("v", "c"), table.find("u", "d"))] == [
        ("", "c"),
        ("", "c"),
        ("", "d"),
    ]


def test_all_client_ids_of_a_user_share_its_rate() -> None:
    table = make_table(user(None))
    assert table.find("u", "c") == table.find("u", "d") == ClientLimit(("u", ""), 1)
    assert table.find("v", "c") == ClientLimit(("v", ""), 1)


def test_a_client_without_an_id_counts_for_the_defaults() -> None:
    assert make_table(client(None)).find("u", "") == ClientLimit(("", ""), 1)
    assert make_table(pair("u", None)).find("u", "") == ClientLimit(("u", ""), 1)


def test_quotas_are_sorted_by_kind() -> None:
    limits = ClientLimits()
    limits.update(
        {
            client("c"): ClientConfig({"producer_byte_rate": 10.0, "request_percentage": 5.0}),
            user("u"): ClientConfig({"controller_mutation_rate": 0.5}),
            make_entity([("ip", "10.0.0.1")]): ClientConfig({"connection_creation_rate": 7.0}),
        }
    )
    limits_by_kind = {kind: table.find("u", "c") for kind, table in limits.tables.items()}
    assert limits_by_kind == {
        QuotaKind.PRODUCE: ClientLimit(("", "c"), 10),
        QuotaKind.FETCH: None,
        QuotaKind.REQUEST: ClientLimit(("", "c"), 5),
        QuotaKind.MUTATION: ClientLimit(("u", ""), 0.5),
    }


def test_an_update_replaces_what_differs() -> None:
    limits = ClientLimits()
    kept, changed, removed, added = client("kept"), client("changed"), pair("u", "removed"), user("added")

    def config(rate: float) -> ClientConfig:
        return ClientConfig({"producer_byte_rate": rate})

    def find(client_id: str, name: str = "u") -> float | None:
        limit = limits.tables[QuotaKind.PRODUCE].find(name, client_id)
        return None if limit is None else limit.limit

    limits.update({kept: config(1), changed: config(2), removed: config(3)})
    assert [find("kept"), find("changed"), find("removed")] == [1, 2, 3]
    limits.update({kept: config(1), changed: ClientConfig({"consumer_byte_rate": 5.0}), added: config(4)})
    assert [find("kept", "v"), find("changed", "v"), find("removed", "v"), find("x", "added")] == [1, None, None, 4]
    assert limits.tables[QuotaKind.FETCH].find("v", "changed") == ClientLimit(("", "changed"), 5)
    limits.update({})
    assert not any(limits.tables.values())


def test_limits_that_old_tools_stored_divide_by_nothing() -> None:
    table = LimitTable()
    table.add(client("nan"), math.nan)
    table.add(client("zero"), 0)
    assert table.find("u", "nan") is None
    zero = table.find("u", "zero")
    assert zero is not None
    assert 0 < zero.limit < 1e-6


def test_addresses_have_rates_of_connections() -> None:
    clients = {
        make_entity([("ip", "10.0.0.1")]): ClientConfig({"connection_creation_rate": 7.0}),
        make_entity([("ip", None)]): ClientConfig({"connection_creation_rate": 3.0}),
        user("u"): ClientConfig({"producer_byte_rate": 1.0}),
    }
    assert build_address_limits(clients) == {"10.0.0.1": 7, None: 3}
