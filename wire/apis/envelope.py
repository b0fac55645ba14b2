"""Envelope (key 58): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, bytestring, int16


class EnvelopeRequest(Request, api_key=58, versions="0", flexible="0+"):
    """DOC"""

    request_data: bytes = bytestring()
    request_principal: bytes | None = bytestring(nullable="0+")
    client_host_address: bytes = bytestring()


class EnvelopeResponse(Response, api_key=58, versions="0", flexible="0+"):
    """DOC"""

    response_data: bytes | None = bytestring(nullable="0+", default=None)
    error_code: int = int16()
