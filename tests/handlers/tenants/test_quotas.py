"""Client quotas of instances: set, described and in force among the clients of the instance."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from kafkacompat.wire.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.tenants.tenant_node import BANK, OPERATOR, SHOP, TenantNode
from tests.handlers.test_client_quotas import (
    ANY,
    CONNECTIONS,
    CONSUME,
    DEFAULT,
    EXACT,
    PRODUCE,
    Names,
    alter,
    describe,
    make_entry,
)

REFUSED = ErrorCode.INVALID_REQUEST
ENTITIES: list[Names] = [
    {"user": "alice"},
    {"user": None},
    {"client-id": "app"},
    {"client-id": None},
    {"user": "alice", "client-id": "app"},
    {"user": None, "client-id": None},
]


@pytest.fixture
def node() -> TenantNode:
    """All entities have quotas in both instances and in the cluster, with other values."""
    node = TenantNode()
    for instance, value in ((SHOP, 1.0), (BANK, 2.0), (OPERATOR, 3.0)):
        entries = [make_entry(names, {PRODUCE: value}) for names in ENTITIES]
        assert alter(node.client(instance), *entries) == [0] * len(entries)
    assert alter(node.client(OPERATOR), make_entry({"ip": "10.0.0.1"}, {CONNECTIONS: 5.0})) == [0]
    return node


OWN = {
    "user=alice",
    "user=None",
    "client-id=app",
    "client-id=None",
    "client-id=app user=alice",
    "client-id=None user=None",
}


@pytest.mark.parametrize(("instance", "value"), [(SHOP, 1.0), (BANK, 2.0)])
def test_each_instance_sees_its_own_quotas(node: TenantNode, instance: str, value: float) -> None:
    assert describe(node.client(instance)) == {key: {PRODUCE: value} for key in OWN}


def test_entities_are_stored_under_physical_names(node: TenantNode) -> None:
    stored = {entity for entity in node.holder.image.clients if any("shop" in (name or "") for _, name in entity)}
    assert stored == {
        (("user", "shop.alice"),),
        (("user", "shop."),),
        (("client-id", "shop.app"),),
        (("client-id", "shop."),),
        (("client-id", "shop.app"), ("user", "shop.alice")),
        (("client-id", "shop."), ("user", "shop.")),
    }


@pytest.mark.parametrize(
    ("component", "strict", "entities"),
    [
        (("user", EXACT, "alice"), False, {"user=alice", "client-id=app user=alice"}),
        (("user", EXACT, "alice"), True, {"user=alice"}),
        (("user", DEFAULT, None), False, {"user=None", "client-id=None user=None"}),
        (("client-id", ANY, None), True, {"client-id=app", "client-id=None"}),
        (("user", EXACT, "shop.alice"), False, set()),
        (("user", EXACT, "bank.alice"), False, set()),
        (("user", EXACT, ""), False, set()),
    ],
)
def test_filters_select_among_the_own_quotas(
    node: TenantNode, component: tuple[str, int, str | None], strict: bool, entities: set[str]
) -> None:
    assert describe(node.client(SHOP), component, strict=strict) == {entity: {PRODUCE: 1.0} for entity in entities}


def test_a_change_concerns_the_instance_only(node: TenantNode) -> None:
    assert alter(node.client(SHOP), make_entry({"user": None}, {PRODUCE: None, CONSUME: 9.0})) == [0]
    assert describe(node.client(SHOP), ("user", DEFAULT, None), strict=True) == {"user=None": {CONSUME: 9.0}}
    assert describe(node.client(BANK), ("user", DEFAULT, None), strict=True) == {"user=None": {PRODUCE: 2.0}}
    assert describe(node.client(OPERATOR), ("user", DEFAULT, None), strict=True) == {"user=None": {PRODUCE: 3.0}}


def test_addresses_are_the_operators(node: TenantNode) -> None:
    client, before = node.client(SHOP), node.holder.image.clients
    request = AlterClientQuotasRequest(
        entries=[
            make_entry({"ip": "10.0.0.1"}, {CONNECTIONS: 1.0}),
            make_entry({"ip": None, "user": "alice"}, {CONNECTIONS: 1.0}),
        ]
    )
    refused = client.ask(request, AlterClientQuotasResponse, 1).entries
    assert [entry.error_code for entry in refused] == [REFUSED] * 2
    assert refused[0].error_message is not None and "the operator of the cluster sets them" in refused[0].error_message
    assert [(part.entity_type, part.entity_name) for part in refused[0].entity] == [("ip", "10.0.0.1")]
    assert node.holder.image.clients == before
    for how, match in ((ANY, None), (DEFAULT, None), (EXACT, "10.0.0.1")):
        component = ComponentData(entity_type="ip", match_type=how, match=match)
        asked = DescribeClientQuotasRequest(components=[component])
        response = client.ask(asked, DescribeClientQuotasResponse, 1)
        assert (response.error_code, response.entries) == (REFUSED, None)


def test_a_refused_entity_leaves_the_others_alone(node: TenantNode) -> None:
    entries = [make_entry({"ip": "10.0.0.1"}, {CONNECTIONS: 1.0}), make_entry({"user": "bob"}, {PRODUCE: 7.0})]
    assert sorted(alter(node.client(SHOP), *entries)) == [0, REFUSED]
    assert describe(node.client(SHOP), ("user", EXACT, "bob")) == {"user=bob": {PRODUCE: 7.0}}


@pytest.mark.parametrize("names", [{"user": ""}, {"client-id": ""}, {"vip": "x"}, {}])
def test_entities_that_are_not_valid(node: TenantNode, names: Names) -> None:
    request = AlterClientQuotasRequest(entries=[make_entry(names, {PRODUCE: 1.0})])
    (refused,) = node.client(SHOP).ask(request, AlterClientQuotasResponse, 1).entries
    assert refused.error_code == REFUSED
    assert {part.entity_type: part.entity_name for part in refused.entity} == names


def test_rights_on_the_instance_are_needed() -> None:
    node = TenantNode(guarded=True)
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert alter(node.client(SHOP, "alice"), make_entry({"user": "alice"}, {PRODUCE: 9.0})) == [refused]
    assert alter(node.client(SHOP), make_entry({"user": "alice"}, {PRODUCE: 9.0})) == [0]
    request = DescribeClientQuotasRequest()
    response = node.client(SHOP, "alice").ask(request, DescribeClientQuotasResponse, 1)
    assert (response.error_code, response.entries or []) == (refused, [])
