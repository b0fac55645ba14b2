"""SaslHandshake (key 17): choose a SASL mechanism.

What the mechanism exchanges follows raw on the connection in version 0, and in SaslAuthenticate from 1 (KIP-152).
"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, array, int16, string


class SaslHandshakeRequest(Request, api_key=17, versions="0-1"):
    """Authenticate with this mechanism."""

    mechanism: str = string()  # PLAIN, SCRAM-SHA-256, ...


class SaslHandshakeResponse(Response, api_key=17, versions="0-1"):
    """Whether it may be used."""

    error_code: int = int16()
    mechanisms: list[str] = array(string())  # all that the listener accepts
