"""SaslHandshake (key 17), v0-1: choose a SASL mechanism.

v0     the mechanism's messages follow without headers
v1     they follow in SaslAuthenticate (KIP-152)

The connections of a listener with SASL answer it while a client authenticates itself (`kafkacompat.server.connection`). Every
other request is rejected, as by Kafka: after authentication, and on a listener without SASL.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacompat.wire.errors import ErrorCode


def handle_sasl_handshake(
    request: SaslHandshakeRequest, context: RequestContext, services: Services
) -> SaslHandshakeResponse:
    """Reject the request: nothing is to be authenticated."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
