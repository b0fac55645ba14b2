"""ExpireDelegationToken (key 40), v0-2: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on every PLAINTEXT listener.

v2     flexible
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.security_disabled import NO_TIMESTAMP_MS
from kafkacompat.wire.apis.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from kafkacompat.wire.errors import ErrorCode


def handle_expire_delegation_token(
    request: ExpireDelegationTokenRequest, context: RequestContext, services: Services
) -> ExpireDelegationTokenResponse:
    """Reject the request: there are no tokens."""
    return ExpireDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NO_TIMESTAMP_MS
    )
