"""RenewDelegationToken (key 39), v0-2: extend the lifetime of a delegation token (KIP-48).

v2     flexible
"""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.delegation_tokens import NO_TIMESTAMP_MS, check_token_request
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.token_changes import TokenRules, renew_token
from kafkacompat.wire.apis.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from kafkacompat.wire.errors import KafkaError


def handle_renew_delegation_token(
    request: RenewDelegationTokenRequest, context: RequestContext, services: Services
) -> Pending[RenewDelegationTokenResponse]:
    """Renew a token; only its owner and its renewers may do that."""
    return answer_in_order(_renew_token(request, context, services))


async def _renew_token(
    request: RenewDelegationTokenRequest, context: RequestContext, services: Services
) -> RenewDelegationTokenResponse:
    try:
        check_token_request(context)
        rules, secret, period_ms = TokenRules.read(services.config), bytes(request.hmac), request.renew_period_ms
        expires_at_ms = await services.controller.change_tokens(
            lambda draft, _: renew_token(draft, rules, context.principal, secret, period_ms, services.now_ms())
        )
    except KafkaError as problem:
        return RenewDelegationTokenResponse(error_code=problem.code, expiry_timestamp_ms=NO_TIMESTAMP_MS)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expires_at_ms)
