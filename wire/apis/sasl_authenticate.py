"""SaslAuthenticate (key 36): one step of a SASL exchange, once SaslHandshake chose the mechanism (KIP-152)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, bytestring, int16, int64, string


class SaslAuthenticateRequest(Request, api_key=36, versions="0-2", flexible="2+"):
    """What the client's side of the mechanism says."""

    auth_bytes: bytes = bytestring()  # as the mechanism defines them


class SaslAuthenticateResponse(Response, api_key=36, versions="0-2", flexible="2+"):
    """What the server's side answers."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = bytestring()  # as the mechanism defines them; empty with an error
    session_lifetime_ms: int = int64(versions="1+")  # authenticate again within it (KIP-368); 0: never
