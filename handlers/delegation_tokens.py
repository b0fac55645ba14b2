"""What the requests for delegation tokens have in common: who may send them, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.security.acls.authorizer import parse_super_users
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.security.principals import ANONYMOUS, Principal
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.handlers.context import RequestContext, Services

NO_TIMESTAMP_MS = -1


def check_token_request(context: RequestContext) -> None:
    """Refuse clients that are not authenticated, or by a token: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""
    principal = context.principal
    if principal.by_token or principal == ANONYMOUS:
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
    return requester in parse_super_users(services.config.optional_string("super.users") or "")
