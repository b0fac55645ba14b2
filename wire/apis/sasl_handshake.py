"""SaslHandshake (key 17): choose a SASL mechanism.

The messages of the mechanism follow as raw bytes (version 0) or in SaslAuthenticate requests (from 1, KIP-152).
"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, array, int16, string


class SaslHandshakeRequest(Request, api_key=17, versions="0-1"):
    """Choose the mechanism for authentication."""

    mechanism: str = string()  # the name: PLAIN, SCRAM-SHA-256, ...


class SaslHandshakeResponse(Response, api_key=17, versions="0-1"):
    """The outcome, and the mechanisms that the listener accepts."""

    error_code: int = int16()
    mechanisms: list[str] = array(string())  # all mechanisms that the listener accepts
