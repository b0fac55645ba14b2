"""Delegation tokens of instances: their owners, requesters and renewers are users of one instance."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.security.principals import Principal
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kafkacompat.wire.apis.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkacompat.wire.apis.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkacompat.wire.apis.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from kafkacompat.wire.apis.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.tenants.tenant_node import BANK, OPERATOR, SHOP, TenantNode

DESCRIBE_TOKENS, DESCRIBE, CREATE_TOKENS = 14, 8, 13
TOKEN, USER = 6, 7


class TokenTenants(TenantNode):
    """Two instances on a node that issues tokens."""

    def __init__(self, *, guarded: bool = False) -> None:
        super().__init__(guarded=guarded, delegation_token_secret_key="key", super_users="User:root")

    def create(self, instance: str | None, user: str, owner: str | None = None, renewers: tuple[str, ...] = ()) -> Any:
        request = CreateDelegationTokenRequest(
            owner_principal_type="User" if owner else None,
            owner_principal_name=owner,
            renewers=[CreatableRenewers(principal_type="User", principal_name=name) for name in renewers],
            max_lifetime_ms=-1,
        )
        return self.ask_as(instance, request, CreateDelegationTokenResponse, 3, user)

    def describe(self, instance: str | None, user: str, owners: list[str] | None = None) -> list[tuple[str, str, Any]]:
        """List the owner, the requester and the renewers of each token that a user sees."""
        named = [DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners or ()]
        request = DescribeDelegationTokenRequest(owners=None if owners is None else named)
        response = self.ask_as(instance, request, DescribeDelegationTokenResponse, 3, user)
        assert response.error_code == 0
        return [
            (
                token.principal_name,
                token.token_requester_principal_name,
                [renewer.principal_name for renewer in token.renewers],
            )
            for token in response.tokens
        ]


@pytest.fixture(params=[False, True], ids=["open", "guarded"])
def node(request: pytest.FixtureRequest) -> TokenTenants:
    node = TokenTenants(guarded=request.param)
    for instance in (SHOP, BANK, OPERATOR):
        assert node.create(instance, "alice", renewers=("bob",)).error_code == 0
    return node


def test_a_token_shows_the_names_that_clients_know(node: TokenTenants) -> None:
    token = node.create(SHOP, "carol")
    assert (token.principal_name, token.token_requester_principal_name) == ("carol", "carol")
    stored = node.holder.image.tokens[token.token_id]
    assert stored.owner == stored.requester == Principal("User", "shop.carol")


@pytest.mark.parametrize("instance", [SHOP, BANK])
def test_each_instance_sees_its_own_tokens(node: TokenTenants, instance: str) -> None:
    own = [("alice", "alice", ["bob"])]
    for user in ("alice", "bob", "root"):
        assert node.describe(instance, user) == own
    assert node.describe(instance, "carol") == []
    assert node.describe(instance, "root", ["alice"]) == own
    assert node.describe(instance, "root", ["bank.alice", "shop.alice"]) == []


def test_only_its_own_users_renew_and_expire_a_token(node: TokenTenants) -> None:
    secret = bytes(node.create(SHOP, "carol", renewers=("bob",)).hmac)
    renewal = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=1000)
    expiry = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=-1)
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    for instance in (BANK, OPERATOR):
        for user in ("carol", "bob", "shop.carol" if instance else "root"):
            assert node.ask_as(instance, renewal, RenewDelegationTokenResponse, 2, user).error_code == mismatch
            assert node.ask_as(instance, expiry, ExpireDelegationTokenResponse, 2, user).error_code == mismatch
    assert node.ask_as(SHOP, renewal, RenewDelegationTokenResponse, 2, "bob").error_code == 0
    assert node.ask_as(SHOP, expiry, ExpireDelegationTokenResponse, 2, "carol").error_code == 0


def test_super_users_create_tokens_for_the_users_of_their_instance(node: TokenTenants) -> None:
    token = node.create(SHOP, "root", owner="bob")
    assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "bob", "root")
    assert node.holder.image.tokens[token.token_id].owner == Principal("User", "shop.bob")
    refused = node.create(SHOP, "alice", owner="bob")
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.principal_name, refused.token_requester_principal_name) == ("bob", "alice")


def test_a_token_that_the_operator_has_created_is_not_shown(node: TokenTenants) -> None:
    assert node.create(OPERATOR, "root", owner="shop.carol").error_code == 0
    assert node.describe(SHOP, "carol") == []


def test_clients_without_a_user_have_no_tokens(node: TokenTenants) -> None:
    refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert node.create(SHOP, "ANONYMOUS").error_code == refused
    assert node.create(OPERATOR, "ANONYMOUS").error_code == refused


@pytest.mark.parametrize(
    ("kind", "operation", "name"),
    [(USER, DESCRIBE_TOKENS, "User:alice"), (USER, DESCRIBE_TOKENS, "*"), (TOKEN, DESCRIBE, "*")],
)
def test_rights_on_users_and_tokens_are_those_of_the_instance(kind: int, operation: int, name: str) -> None:
    node = TokenTenants(guarded=True)
    for instance in (SHOP, BANK):
        assert node.create(instance, "alice").error_code == 0
    creation = AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=3,
        principal="User:auditor",
        host="*",
        operation=operation,
        permission_type=3,
    )
    assert node.ask_as(SHOP, CreateAclsRequest(creations=[creation]), CreateAclsResponse, 3).results[0].error_code == 0
    assert node.describe(SHOP, "auditor") == [("alice", "alice", [])]
    assert node.describe(BANK, "auditor") == []
    assert node.describe(OPERATOR, "auditor") == []


def test_a_right_to_create_tokens_concerns_the_instance() -> None:
    node = TokenTenants(guarded=True)
    creation = AclCreation(
        resource_type=USER,
        resource_name="*",
        resource_pattern_type=3,
        principal="User:gateway",
        host="*",
        operation=CREATE_TOKENS,
        permission_type=3,
    )
    assert node.ask_as(SHOP, CreateAclsRequest(creations=[creation]), CreateAclsResponse, 3).results[0].error_code == 0
    assert node.create(SHOP, "gateway", owner="bob").principal_name == "bob"
    for instance in (BANK, OPERATOR):
        refused = node.create(instance, "gateway", owner="bob")
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
