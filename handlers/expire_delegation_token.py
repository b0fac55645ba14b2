"""ExpireDelegationToken (key 40), v0-2: expire a delegation token, now or after some time (KIP-48).

v2     flexible
"""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.delegation_tokens import change_expiry
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.token_changes import expire_token
from kafkacompat.wire.apis.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


def handle_expire_delegation_token(
    request: ExpireDelegationTokenRequest, context: RequestContext, services: Services
) -> Pending[ExpireDelegationTokenResponse]:
    """Expire a token; only its owner and its renewers may do that."""
    return answer_in_order(_expire_token(request, context, services))


async def _expire_token(
    request: ExpireDelegationTokenRequest, context: RequestContext, services: Services
) -> ExpireDelegationTokenResponse:
    code, expires_at_ms = await change_expiry(
        expire_token, request.hmac, request.expiry_time_period_ms, context, services
    )
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expires_at_ms)
