"""RenewDelegationToken (key 39), v0-2: extend the lifetime of a delegation token (KIP-48).

v2     flexible
"""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.delegation_tokens import change_expiry
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.token_changes import renew_token
from kafkacompat.wire.apis.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def handle_renew_delegation_token(
    request: RenewDelegationTokenRequest, context: RequestContext, services: Services
) -> Pending[RenewDelegationTokenResponse]:
    """Renew a token; only its owner and its renewers may do that."""
    return answer_in_order(_renew_token(request, context, services))


async def _renew_token(
    request: RenewDelegationTokenRequest, context: RequestContext, services: Services
) -> RenewDelegationTokenResponse:
    code, expires_at_ms = await change_expiry(renew_token, request.hmac, request.renew_period_ms, context, services)
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expires_at_ms)
