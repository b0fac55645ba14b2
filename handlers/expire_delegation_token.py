"""ExpireDelegationToken (key 40), v0-2: expire a delegation token, now or after some time (KIP-48).

v2     flexible
"""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.delegation_tokens import NO_TIMESTAMP_MS, check_token_request
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.token_changes import TokenRules, expire_token
from kafkacompat.wire.apis.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from kafkacompat.wire.errors import KafkaError


def handle_expire_delegation_token(
    request: ExpireDelegationTokenRequest, context: RequestContext, services: Services
) -> Pending[ExpireDelegationTokenResponse]:
    """Expire a token; only its owner and its renewers may do that."""
    return answer_in_order(_expire_token(request, context, services))


async def _expire_token(
    request: ExpireDelegationTokenRequest, context: RequestContext, services: Services
) -> ExpireDelegationTokenResponse:
    try:
        check_token_request(context)
        rules, secret, period_ms = TokenRules.read(services.config), bytes(request.hmac), request.expiry_time_period_ms
        expires_at_ms = await services.controller.change_tokens(
            lambda draft, _: expire_token(draft, rules, context.principal, secret, period_ms, services.now_ms())
        )
    except KafkaError as problem:
        return ExpireDelegationTokenResponse(error_code=problem.code, expiry_timestamp_ms=NO_TIMESTAMP_MS)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_at_ms)
