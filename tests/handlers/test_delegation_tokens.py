"""Delegation tokens: created, renewed, expired and described by Kafka's rules, and kept in its form."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any, TypeVar

import pytest

from kafkacompat.handlers.context import Pending
from kafkacompat.metadata import codec
from kafkacompat.metadata.token_expiry import TokenExpiry
from kafkacompat.metadata.znodes.tokens import decode_token
from kafkacompat.security.acls.authorizer import Authorizer
from kafkacompat.security.principals import ANONYMOUS, Principal
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
from kafkacompat.wire.schema import Request, Response
from tests.handlers.admin_node import AdminNode
from tests.handlers.node import context_of, handle_request, reread_response
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.security.acls.rules import build_table

Answer = TypeVar("Answer", bound=Response)

SECRET = "the-secret-key"
ALICE, BOB, CAROL, ADMIN = (Principal("User", name) for name in ("alice", "bob", "carol", "admin"))
NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


class World:
    def __init__(self, secret: str | None = SECRET) -> None:
        self.node = AdminNode()
        config = self.node.services.config
        given = {
            **config.given,
            "delegation.token.max.lifetime.ms": str(10 * HOUR_MS),
            "delegation.token.expiry.time.ms": str(HOUR_MS),
            "super.users": "User:root;User:admin",
        }
        if secret is not None:
            given["delegation.token.secret.key"] = secret
        self.node.services.config = type(config)(given)
        clock: Any = self.node.services.clock
        self.clock = clock
        self.clock.advance(NOW_MS / 1000)

    def ask(self, user: Principal, request: Request, answer: type[Answer], version: int | None = None) -> Answer:
        version = type(request).VERSIONS.last if version is None else version
        response = handle_request(request, context_of(version)._replace(principal=user), self.node.services)
        if isinstance(response, Pending):
            response = outcome(response.response)
        return reread_response(response, answer, version)

    def create(self, user: Principal = ALICE, renewers: tuple[Principal, ...] = (), **fields: Any) -> Any:
        listed = [CreatableRenewers(principal_type=user.kind, principal_name=user.name) for user in renewers]
        request = CreateDelegationTokenRequest(renewers=listed, **{"max_lifetime_ms": -1, **fields})
        return self.ask(user, request, CreateDelegationTokenResponse)

    def renew(self, user: Principal, secret: bytes, period_ms: int = -1) -> Any:
        request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms)
        return self.ask(user, request, RenewDelegationTokenResponse)

    def expire(self, user: Principal, secret: bytes, period_ms: int = -1) -> Any:
        request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
        return self.ask(user, request, ExpireDelegationTokenResponse)

    def describe(self, user: Principal, owners: list[Principal] | None = None) -> Any:
        named = None
        if owners is not None:
            named = [
                DescribeDelegationTokenOwner(principal_type=owner.kind, principal_name=owner.name) for owner in owners
            ]
        request = DescribeDelegationTokenRequest(owners=named)
        return self.ask(user, request, DescribeDelegationTokenResponse)


def test_a_token() -> None:
    world = World()
    token = world.create(renewers=(BOB,))
    assert token.error_code == 0
    assert (token.issue_timestamp_ms, token.expiry_timestamp_ms) == (NOW_MS, NOW_MS + HOUR_MS)
    assert token.max_timestamp_ms == NOW_MS + 10 * HOUR_MS
    assert (token.principal_name, token.token_requester_principal_name) == ("alice", "alice")
    assert bytes(token.hmac) == hmac.new(SECRET.encode(), token.token_id.encode(), hashlib.sha512).digest()
    (described,) = world.describe(ALICE).tokens
    assert (described.token_id, bytes(described.hmac)) == (token.token_id, bytes(token.hmac))
    assert [renewer.principal_name for renewer in described.renewers] == ["bob"]


def test_the_store_has_the_form_of_kafka() -> None:
    world = World()
    token = world.create(Principal("User", "CN=a/b,O=ü"), renewers=(BOB,))
    key = f"/delegation_token/tokens/{token.token_id}"
    stored = outcome(world.node.store.load())
    assert json.loads(stored[key].value) == {
        "version": 3,
        "owner": "User%3ACN%3Da%2Fb%2CO%3D%C3%BC",
        "tokenRequester": "User%3ACN%3Da%2Fb%2CO%3D%C3%BC",
        "renewers": ["User%3Abob"],
        "issueTimestamp": NOW_MS,
        "maxTimestamp": NOW_MS + 10 * HOUR_MS,
        "expiryTimestamp": NOW_MS + HOUR_MS,
        "tokenId": token.token_id,
    }
    assert codec.decode_image(stored).tokens == world.node.holder.image.tokens
    assert bytes(token.hmac) not in stored[key].value and SECRET.encode() not in stored[key].value


@pytest.mark.parametrize("version", [1, 2])
def test_tokens_of_older_releases(version: int) -> None:
    """Before version 3 there was no requester."""
    value = {
        "version": version,
        "owner": "User%3Aalice",
        "renewers": [],
        "issueTimestamp": 1,
        "maxTimestamp": 3,
        "expiryTimestamp": 2,
        "tokenId": "x",
    }
    token = decode_token("/delegation_token/tokens/x", json.dumps(value).encode())
    assert (token.owner, token.requester, token.expires_at_ms, token.ends_at_ms) == (ALICE, ALICE, 2, 3)


@pytest.mark.parametrize(("max_lifetime_ms", "ends_after_ms"), [(-1, 10), (0, 10), (1, 0), (5, 5), (20, 10)])
def test_the_longest_lifetime(max_lifetime_ms: int, ends_after_ms: int) -> None:
    token = World().create(max_lifetime_ms=max_lifetime_ms * HOUR_MS if max_lifetime_ms != 1 else 1)
    ends_at_ms = NOW_MS + (1 if max_lifetime_ms == 1 else ends_after_ms * HOUR_MS)
    assert token.max_timestamp_ms == ends_at_ms
    assert token.expiry_timestamp_ms == min(ends_at_ms, NOW_MS + HOUR_MS)


def test_renewal() -> None:
    world = World()
    secret = bytes(world.create(renewers=(BOB,)).hmac)
    world.clock.advance(1800)
    assert world.renew(ALICE, secret).expiry_timestamp_ms == NOW_MS + HOUR_MS * 3 // 2
    assert world.renew(BOB, secret, 1000).expiry_timestamp_ms == NOW_MS + HOUR_MS // 2 + 1000
    assert world.renew(BOB, secret, 5 * HOUR_MS).expiry_timestamp_ms == NOW_MS + HOUR_MS * 3 // 2
    refused = world.renew(CAROL, secret)
    assert (refused.error_code, refused.expiry_timestamp_ms) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, -1)
    assert world.renew(ALICE, b"unknown").error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    world.clock.advance(2 * 3600)
    assert world.renew(ALICE, secret).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_no_renewal_beyond_the_end() -> None:
    world = World()
    token = world.create(max_lifetime_ms=HOUR_MS + 1000)
    world.clock.advance(3000)
    assert world.renew(ALICE, bytes(token.hmac)).expiry_timestamp_ms == token.max_timestamp_ms


def test_expiry() -> None:
    world = World()
    secret = bytes(world.create().hmac)
    assert world.expire(BOB, secret).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert world.expire(ALICE, secret, 5000).expiry_timestamp_ms == NOW_MS + 5000
    expired = world.expire(ALICE, secret)
    assert (expired.error_code, expired.expiry_timestamp_ms) == (0, NOW_MS)
    assert world.expire(ALICE, secret).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert world.node.holder.image.tokens == {} and world.describe(ALICE).tokens == []
    assert not any("delegation_token" in key for key in outcome(world.node.store.load()))


def test_who_sees_which_tokens() -> None:
    world = World()
    world.create(ALICE, renewers=(BOB,))
    world.create(CAROL)

    def see(user: Principal, owners: list[Principal] | None = None) -> list[str]:
        return sorted(token.principal_name for token in world.describe(user, owners).tokens)

    assert see(ALICE) == see(BOB) == ["alice"]
    assert see(ADMIN) == ["alice", "carol"]
    assert see(ADMIN, [CAROL]) == ["carol"] and see(ADMIN, [BOB]) == ["alice"]
    assert see(ALICE, [CAROL]) == [] and see(ADMIN, []) == []


def test_tokens_for_others() -> None:
    world = World()
    owner: dict[str, Any] = {"owner_principal_type": "User", "owner_principal_name": "alice"}
    refused = world.create(BOB, **owner)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    made = world.create(ADMIN, **owner)
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "alice", "admin")
    assert len(world.describe(ALICE).tokens) == 1


def test_rights_on_other_users_and_on_tokens() -> None:
    world = World()
    token_id = world.create(ALICE).token_id
    table = build_table(
        "+bob CREATE_TOKENS USER User:alice",
        f"+carol DESCRIBE DELEGATION_TOKEN {token_id}",
        "+admin DESCRIBE_TOKENS USER User:alice",
    )
    world.node.services.authorizer = Authorizer(lambda: table)
    owner: dict[str, Any] = {"owner_principal_type": "User", "owner_principal_name": "alice"}
    refused = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert [world.create(user, **owner).error_code for user in (BOB, CAROL, ADMIN)] == [0, refused, refused]
    assert [token.token_id for token in world.describe(CAROL).tokens] == [token_id]
    assert len(world.describe(ADMIN).tokens) == 2
    assert world.describe(Principal("User", "dave")).tokens == []


@pytest.mark.parametrize("user", [ANONYMOUS, ALICE._replace(by_token=True)])
def test_clients_that_may_not_ask(user: Principal) -> None:
    world = World()
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert world.create(user).error_code == code
    assert world.renew(user, b"x").error_code == code
    assert world.expire(user, b"x").error_code == code
    assert world.describe(user).error_code == code


def test_without_a_secret_key_there_are_no_tokens() -> None:
    world = World(secret=None)
    code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert world.create().error_code == code
    assert world.renew(ALICE, b"x").error_code == code
    assert world.expire(ALICE, b"x").error_code == code
    assert world.describe(ALICE).error_code == code


def test_renewers_are_users() -> None:
    refused = World().create(renewers=(Principal("Group", "x"),))
    assert refused.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_expired_tokens_are_removed() -> None:
    world = World()
    world.create()
    world.create(max_lifetime_ms=1000)
    expiry = TokenExpiry(world.node.services.config, world.node.controller, world.clock)
    expiry.start()
    world.clock.advance(3600)
    assert len(world.node.holder.image.tokens) == 1
    world.clock.advance(3600)
    assert world.node.holder.image.tokens == {}
    expiry.stop()
    assert world.clock.getDelayedCalls() == []


def test_no_key_is_shown() -> None:
    from kafkacompat.metadata.token_changes import TokenRules

    assert SECRET not in repr(TokenRules.read(World().node.services.config))
