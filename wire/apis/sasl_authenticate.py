"""SaslAuthenticate (key 36): one step of a SASL exchange, after SaslHandshake has set the mechanism (KIP-152)."""

from __future__ import annotations

from kafkacompat.wire.entities import TEXT
from kafkacompat.wire.schema import Request, Response, bytestring, int16, int64, string


class SaslAuthenticateRequest(Request, api_key=36, versions="0-2", flexible="2+"):
    """Send the client's next message of the mechanism."""

    auth_bytes: bytes = bytestring()  # the message, in the format of the mechanism


class SaslAuthenticateResponse(Response, api_key=36, versions="0-2", flexible="2+"):
    """The server's next message of the mechanism."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    auth_bytes: bytes = bytestring()  # the message, in the format of the mechanism; empty if the request fails
    # the time within which the client must authenticate again (KIP-368); 0: no limit
    session_lifetime_ms: int = int64(versions="1+")
