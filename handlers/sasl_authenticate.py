"""SaslAuthenticate (key 36), v0-2: one step of an authentication that SaslHandshake began.

v1     the session's lifetime (KIP-368)
v2     flexible

Kafka serves this API also on a listener without SASL, and rejects every request there; so does this broker.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacompat.wire.errors import ErrorCode


def handle_sasl_authenticate(
    request: SaslAuthenticateRequest, context: RequestContext, services: Services
) -> SaslAuthenticateResponse:
    """Reject the request: the listener has no SASL."""
    message = f"the listener {context.peer.listener_name} has no SASL; send requests without authenticating"
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message)
