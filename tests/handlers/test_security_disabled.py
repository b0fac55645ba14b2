"""ACLs and delegation tokens: refused as Apache Kafka 4.3.1 without an authorizer refuses them on PLAINTEXT."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kafkacompat.wire.apis.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from kafkacompat.wire.apis.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kafkacompat.wire.apis.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkacompat.wire.apis.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from kafkacompat.wire.apis.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode

DISABLED = ErrorCode.SECURITY_DISABLED
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize("version", range(4))
def test_acls(version: int) -> None:
    node = AdminNode()
    described = node.ask(DescribeAclsRequest(), DescribeAclsResponse, version)
    assert (described.error_code, described.resources) == (DISABLED, [])
    created = node.ask(CreateAclsRequest(creations=[AclCreation(), AclCreation()]), CreateAclsResponse, version)
    deleted = node.ask(DeleteAclsRequest(filters=[DeleteAclsFilter()]), DeleteAclsResponse, version)
    assert [result.error_code for result in created.results] == [DISABLED] * 2
    assert [(result.error_code, result.matching_acls) for result in deleted.filter_results] == [(DISABLED, [])]
    messages = [described.error_message, *(result.error_message for result in created.results)]
    assert all("no authorizer" in (message or "") for message in messages)


@pytest.mark.parametrize("version", range(4))
def test_tokens_are_not_made(version: int) -> None:
    node = AdminNode()
    request = CreateDelegationTokenRequest()
    if version >= 3:
        request.owner_principal_type, request.owner_principal_name = "User", "alice"
    made = node.ask(request, CreateDelegationTokenResponse, version)
    owner = "alice" if version >= 3 else "ANONYMOUS"
    assert (made.error_code, made.principal_type, made.principal_name) == (NOT_ALLOWED, "User", owner)
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (-1, -1, -1)
    assert (made.token_id, bytes(made.hmac)) == ("", b"")
    assert made.token_requester_principal_name == ("ANONYMOUS" if version >= 3 else "")
    described = node.ask(DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse, version)
    assert (described.error_code, described.tokens) == (NOT_ALLOWED, [])


@pytest.mark.parametrize("version", range(3))
def test_tokens_are_not_renewed_and_not_expired(version: int) -> None:
    node = AdminNode()
    renewed = node.ask(RenewDelegationTokenRequest(hmac=b"x"), RenewDelegationTokenResponse, version)
    expired = node.ask(ExpireDelegationTokenRequest(hmac=b"x"), ExpireDelegationTokenResponse, version)
    assert (renewed.error_code, renewed.expiry_timestamp_ms) == (NOT_ALLOWED, -1)
    assert (expired.error_code, expired.expiry_timestamp_ms) == (NOT_ALLOWED, -1)


def test_an_owner_without_a_type() -> None:
    request = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name="alice")
    made = AdminNode().ask(request, CreateDelegationTokenResponse, 3)
    assert (made.error_code, made.principal_type, made.principal_name) == (NOT_ALLOWED, "", "alice")
