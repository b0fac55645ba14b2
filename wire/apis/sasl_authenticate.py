"""SaslAuthenticate (key 36): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, bytestring, int16, int64, string


class SaslAuthenticateRequest(Request, api_key=36, versions="0-2", flexible="2+"):
    """DOC"""

    auth_bytes: bytes = bytestring()


class SaslAuthenticateResponse(Response, api_key=36, versions="0-2", flexible="2+"):
    """DOC"""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = bytestring()
    session_lifetime_ms: int = int64(versions="1+")
