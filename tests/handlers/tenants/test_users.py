"""The users of instances and their SCRAM credentials."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.tenants.tenant_node import BANK, OPERATOR, SHOP, TenantNode
from tests.handlers.test_scram_credentials import SHA_256, SHA_512, alter, describe, make_deletion, make_upsertion

ONE = [(SHA_256, 4096)]


@pytest.fixture
def node() -> TenantNode:
    """Alice is a user of both instances and of the operator, with other mechanisms."""
    node = TenantNode()
    assert alter(node.client(SHOP), make_upsertion("alice"), make_upsertion("bob")) == {"alice": 0, "bob": 0}
    assert alter(node.client(BANK), make_upsertion("alice", SHA_512, 8192)) == {"alice": 0}
    assert alter(node.client(OPERATOR), make_upsertion("alice"), make_upsertion("operator")) == {
        "alice": 0,
        "operator": 0,
    }
    return node


def test_each_instance_sees_its_own_users(node: TenantNode) -> None:
    assert describe(node.client(SHOP), everybody=True) == {"alice": ONE, "bob": ONE}
    assert describe(node.client(BANK), everybody=True) == {"alice": [(SHA_512, 8192)]}
    assert describe(node.client(OPERATOR), everybody=True).keys() == {
        "alice",
        "operator",
        "shop.alice",
        "shop.bob",
        "bank.alice",
    }


def test_an_instance_without_users_sees_none(node: TenantNode) -> None:
    node.configure("new", **{"cluster.id": "c", "secret": "s"})
    assert describe(node.client("new"), everybody=True) == {}
    request = DescribeUserScramCredentialsRequest(users=[])
    assert node.client("new").ask(request, DescribeUserScramCredentialsResponse, 0).results == []


@pytest.mark.parametrize("name", ["operator", "bank.alice", "shop.alice", "", "."])
def test_no_name_reaches_another_user(node: TenantNode, name: str) -> None:
    missing = ErrorCode.RESOURCE_NOT_FOUND
    before = node.holder.image.clients
    assert describe(node.client(SHOP), name) == {name: missing}
    assert alter(node.client(SHOP), make_deletion(name)) == {
        name: missing if name else ErrorCode.UNACCEPTABLE_CREDENTIAL
    }
    assert node.holder.image.clients == before


def test_the_rules_of_kafka_hold(node: TenantNode) -> None:
    client = node.client(SHOP)
    assert describe(client, "alice", "alice", "nobody") == {
        "alice": ErrorCode.DUPLICATE_RESOURCE,
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert alter(client, make_upsertion(""), make_upsertion("c", 3), make_upsertion("d", iterations=1)) == {
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "c": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "d": ErrorCode.UNACCEPTABLE_CREDENTIAL,
    }
    assert alter(client, make_deletion("alice"), make_upsertion("alice", SHA_512)) == {
        "alice": ErrorCode.DUPLICATE_RESOURCE
    }
    assert alter(client, make_deletion("alice")) == {"alice": 0}
    assert describe(client, everybody=True) == {"bob": ONE}
    assert describe(node.client(BANK), "alice") == {"alice": [(SHA_512, 8192)]}


def test_adopted_users_keep_their_credentials(node: TenantNode) -> None:
    node.configure(SHOP, **{"user.names": "op:operator"})
    assert describe(node.client(SHOP), everybody=True) == {"alice": ONE, "bob": ONE, "op": ONE}
    assert alter(node.client(SHOP), make_deletion("op")) == {"op": 0}
    assert "operator" not in describe(node.client(OPERATOR), everybody=True)


def test_messages_name_users_as_clients_know_them(node: TenantNode) -> None:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name="nobody")])
    (result,) = node.client(SHOP).ask(request, DescribeUserScramCredentialsResponse, 0).results
    assert result.error_message == "'nobody' has no SCRAM credential"


def test_rights_on_the_instance_are_needed() -> None:
    node = TenantNode(guarded=True)
    assert alter(node.client(SHOP), make_upsertion("alice")) == {"alice": 0}
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert alter(node.client(SHOP, "alice"), make_upsertion("mallory")) == {"mallory": refused}
    request = DescribeUserScramCredentialsRequest(users=None)
    response = node.client(SHOP, "alice").ask(request, DescribeUserScramCredentialsResponse, 0)
    assert (response.error_code, response.results) == (refused, [])
    assert describe(node.client(SHOP), everybody=True) == {"alice": ONE}
