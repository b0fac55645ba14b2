"""Quotas in force for the clients of instances, whose defaults are their own."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkacompat.metadata.client_entities import ClientConfig, make_entity
from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.quotas.rates import QuotaWindows

Names = Mapping[str, "str | None"]
NOW_MS = 1_700_000_000_000
ENTITIES: tuple[Names, ...] = (
    {"user": "shop.alice", "client-id": "shop.app"},
    {"user": "shop.alice", "client-id": "shop."},
    {"user": "shop.alice"},
    {"user": "shop.", "client-id": "shop.app"},
    {"user": "shop.", "client-id": "shop."},
    {"user": "shop."},
    {"client-id": "shop.app"},
    {"client-id": "shop."},
)
"""In Kafka's order of precedence, as an instance's entities are stored."""
OPERATORS: tuple[Names, ...] = (
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "app"},
    {"client-id": None},
)


def make_quotas(*entities: Names) -> ClientQuotas:
    """Return quotas whose limits are the positions of the entities."""
    quotas = ClientQuotas(QuotaWindows(11, 1000), QuotaWindows(11, 1000))
    quotas.find_prefix = lambda user: "shop." if user.startswith("shop.") else ""
    quotas.update(
        {
            make_entity(names.items()): ClientConfig({"producer_byte_rate": float(position + 1)})
            for position, names in enumerate(entities)
        }
    )
    return quotas


def find_limit(quotas: ClientQuotas, user: str, client_id: str) -> float | None:
    uses = quotas.find_uses(user, client_id, NOW_MS)
    return None if uses is None or uses.produce is None else uses.produce.limit


@pytest.mark.parametrize("first", range(len(ENTITIES)))
def test_the_first_of_the_own_levels_counts(first: int) -> None:
    quotas = make_quotas(*ENTITIES[first:])
    assert find_limit(quotas, "shop.alice", "app") == 1


def test_the_operators_quotas_do_not_apply_to_instances() -> None:
    quotas = make_quotas(*OPERATORS)
    assert find_limit(quotas, "shop.alice", "app") is None
    assert find_limit(quotas, "shop.ANONYMOUS", "") is None
    assert find_limit(quotas, "alice", "app") == 1


def test_the_quotas_of_an_instance_apply_to_no_other_client() -> None:
    quotas = make_quotas(*ENTITIES)
    assert find_limit(quotas, "alice", "app") is None
    assert find_limit(quotas, "bank.alice", "app") is None
    assert find_limit(quotas, "alice", "shop.app") == 7  # A client of the operator may call itself so.


def test_clients_of_one_user_share_its_rate() -> None:
    quotas = make_quotas({"user": "shop.alice"})
    first, second = (quotas.find_uses("shop.alice", name, NOW_MS) for name in ("a", "b"))
    assert first is not None and second is not None and first.produce is second.produce
    bob = quotas.find_uses("shop.bob", "a", NOW_MS)
    assert bob is None


def test_another_prefix_takes_effect_once_limits_are_forgotten() -> None:
    quotas = make_quotas({"user": "shop."})
    assert find_limit(quotas, "carol", "a") is None
    quotas.find_prefix = lambda user: "shop."
    quotas.forget()
    assert find_limit(quotas, "carol", "a") == 1
