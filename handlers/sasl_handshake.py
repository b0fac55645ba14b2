"""SaslHandshake (key 17), v0-1: choose how to authenticate.

v0     what the mechanism exchanges follows without headers
v1     it follows in SaslAuthenticate (KIP-152)

On a listener without SASL nobody authenticates; there Kafka serves it too, and says so.
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacompat.wire.errors import ErrorCode


def handle_sasl_handshake(
    request: SaslHandshakeRequest, context: RequestContext, services: Services
) -> SaslHandshakeResponse:
    """Refuse: the listener has no SASL."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
