"""RenewDelegationToken (key 39), v0-2: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on every PLAINTEXT listener.

v2     flexible
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.security_disabled import NO_TIMESTAMP_MS
from kafkacompat.wire.apis.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from kafkacompat.wire.errors import ErrorCode


def handle_renew_delegation_token(
    request: RenewDelegationTokenRequest, context: RequestContext, services: Services
) -> RenewDelegationTokenResponse:
    """Reject the request: there are no tokens."""
    return RenewDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NO_TIMESTAMP_MS
    )
