"""CreateDelegationToken (key 38), v0-3: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on every PLAINTEXT listener.

v2     flexible
v3     tokens for other owners (KIP-373)
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.security_disabled import NO_TIMESTAMP_MS
from kafkacompat.wire.apis.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from kafkacompat.wire.errors import ErrorCode


def handle_create_delegation_token(
    request: CreateDelegationTokenRequest, context: RequestContext, services: Services
) -> CreateDelegationTokenResponse:
    """Reject the request, naming the requested owner, or the requester if there is none."""
    named, requester = bool(request.owner_principal_name), context.principal
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=(request.owner_principal_type or "") if named else requester.kind,
        principal_name=(request.owner_principal_name or "") if named else requester.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=NO_TIMESTAMP_MS,
        expiry_timestamp_ms=NO_TIMESTAMP_MS,
        max_timestamp_ms=NO_TIMESTAMP_MS,
    )
