"""The bounds of what the clients of an instance may create in the metadata."""

from __future__ import annotations

import pytest

from kafkacompat.handlers.tenants import bounds
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kafkacompat.wire.apis.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers import test_client_quotas as quotas
from tests.handlers import test_scram_credentials as scram
from tests.handlers.tenants.tenant_node import BANK, SHOP, TenantNode
from tests.handlers.tenants.test_configs import GROUP, alter

FULL = ErrorCode.POLICY_VIOLATION


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> TenantNode:
    monkeypatch.setattr(bounds, "MOST_ENTRIES", 2)
    return TenantNode(guarded=True, delegation_token_secret_key="key")


def create_acls(node: TenantNode, instance: str, *topics: str) -> list[int]:
    creations = [
        AclCreation(
            resource_type=2,
            resource_name=topic,
            resource_pattern_type=3,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        )
        for topic in topics
    ]
    response = node.ask_as(instance, CreateAclsRequest(creations=creations), CreateAclsResponse, 3)
    return [result.error_code for result in response.results]


def test_access_rules(node: TenantNode) -> None:
    assert create_acls(node, SHOP, "a", "b", "c") == [FULL] * 3
    assert create_acls(node, SHOP, "a", "b") == [0, 0]
    assert create_acls(node, SHOP, "c") == [FULL]
    assert create_acls(node, BANK, "c") == [0]


def test_users_and_quotas(node: TenantNode) -> None:
    shop, bank = node.client(SHOP), node.client(BANK)
    assert scram.alter(shop, scram.make_upsertion("alice")) == {"alice": 0}
    entry = quotas.make_entry({"client-id": "app"}, {quotas.PRODUCE: 1.0})
    assert quotas.alter(shop, entry) == [0]
    assert scram.alter(shop, scram.make_upsertion("bob")) == {"bob": FULL}
    assert scram.alter(bank, scram.make_upsertion("bob")) == {"bob": 0}
    assert quotas.alter(shop, quotas.make_entry({"user": "x"}, {quotas.PRODUCE: 1.0})) == [FULL]
    # What is removed makes room.
    assert quotas.alter(shop, quotas.make_entry({"client-id": "app"}, {quotas.PRODUCE: None})) == [0]
    assert scram.alter(shop, scram.make_upsertion("bob")) == {"bob": 0}


def test_configs_of_groups(node: TenantNode) -> None:
    option = "consumer.session.timeout.ms"
    changes = [(GROUP, name, option, "50000") for name in ("a", "b", "c")]
    assert alter(node, SHOP, *changes[:2]) == {(GROUP, "a"): 0, (GROUP, "b"): 0}
    assert alter(node, SHOP, changes[2]) == {(GROUP, "c"): FULL}
    assert alter(node, BANK, changes[2]) == {(GROUP, "c"): 0}


def test_delegation_tokens(node: TenantNode) -> None:
    request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
    codes = [node.ask_as(SHOP, request, CreateDelegationTokenResponse, 2).error_code for _ in range(3)]
    assert codes == [0, 0, FULL]
