"""DescribeDelegationToken (key 41), v0-3: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on every PLAINTEXT listener.

v2     flexible
v3     the requester of a token (KIP-373)
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkacompat.wire.errors import ErrorCode


def handle_describe_delegation_token(
    request: DescribeDelegationTokenRequest, context: RequestContext, services: Services
) -> DescribeDelegationTokenResponse:
    """Reject the request: there are no tokens."""
    return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
