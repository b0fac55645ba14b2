"""SaslHandshake (key 17), v0-1: choose a SASL mechanism.

v0     the mechanism's messages follow without headers
v1     they follow in SaslAuthenticate (KIP-152)

Kafka serves this API also on a listener without SASL, and rejects every request there; so does this broker.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacompat.wire.errors import ErrorCode


def handle_sasl_handshake(
    request: SaslHandshakeRequest, context: RequestContext, services: Services
) -> SaslHandshakeResponse:
    """Reject the request: the listener has no SASL."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
