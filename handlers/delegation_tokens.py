"""What the requests for delegation tokens have in common: who may send them, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def acts_for(requester: Principal, owner: Principal, services: Services) -> bool:
    """Return whether a user may create tokens for an owner and see the owner's tokens: itself, and super users."""
    supers = (name.strip() for name in services.config.given.get("super.users", "").split(";"))
    return requester[:2] == owner[:2] or str(requester) in supers
