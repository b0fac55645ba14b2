"""What the requests for delegation tokens have in common: which clients may send them, for which users, and changes of expiry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacompat.metadata.token_changes import TokenRules
from kafkacompat.security.acls.authorizer import parse_super_users
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.security.principals import Principal
from kafkacompat.wire import entities
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.handlers.context import RequestContext, Services
    from kafkacompat.metadata.draft import MetadataDraft

Change = Callable[["MetadataDraft", TokenRules, Principal, bytes, int, int], int]
"""`renew_token` or `expire_token`."""

NO_TIMESTAMP_MS = -1


def check_token_request(context: RequestContext, services: Services) -> None:
    """Refuse clients that are not authenticated, or by a token: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""
    principal = context.principal
    if principal.by_token or services.is_anonymous(principal):
        reason = "requests for delegation tokens need a user who is authenticated without one"
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, reason)


def acts_for(context: RequestContext, operation: AclOperation, owner: Principal, services: Services) -> bool:
    """Return whether a client may create the tokens of an owner, or see them (KIP-373).

    Users act for themselves. With an authorizer they act for others by a right on these users; without one only super users do.
    """
    requester = context.principal
    if requester[:2] == owner[:2]:
        return True
    if services.authorizer is not None:
        kind, host = AclResourceType.USER, context.peer.host
        return services.authorizer.decide(requester, host, operation, kind, str(owner)).allowed
    if requester in parse_super_users(services.config.optional_string("super.users") or ""):
        return True
    instance = services.instances.find_owner(entities.USER, requester.name)
    return instance is not None and str(requester) in instance.super_users and instance.has_user(owner.name)


async def change_expiry(
    change: Change, hmac: bytes, period_ms: int, context: RequestContext, services: Services
) -> tuple[ErrorCode, int]:
    """Renew or expire the token with an HMAC; return the error, and when the token expires."""
    try:
        check_token_request(context, services)
        rules, secret = TokenRules.read(services.config), bytes(hmac)
        expires_at_ms = await services.controller.change_tokens(
            lambda draft, _: change(draft, rules, context.principal, secret, period_ms, services.now_ms())
        )
    except KafkaError as problem:
        return problem.code, NO_TIMESTAMP_MS
    return ErrorCode.NONE, expires_at_ms
