"""SaslAuthenticate (key 36), v0-2: one step of an authentication that SaslHandshake began.

v1     the session's lifetime (KIP-368)
v2     flexible

The connections of a listener with SASL answer it while a client authenticates itself (`kafkacompat.server.connection`). Every
other request is rejected, as by Kafka: after authentication, and on a listener without SASL.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacompat.wire.errors import ErrorCode


def handle_sasl_authenticate(
    request: SaslAuthenticateRequest, context: RequestContext, services: Services
) -> SaslAuthenticateResponse:
    """Reject the request: nothing is to be authenticated."""
    message = "SaslAuthenticate request received after successful authentication"
    if services.is_anonymous(context.principal):
        message = f"the listener {context.peer.listener_name} has no SASL; send requests without authenticating"
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message)
