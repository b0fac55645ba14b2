"""Envelope (key 58): a broker passes a client's request on to the controller (KIP-590)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, bytestring, int16


class EnvelopeRequest(Request, api_key=58, versions="0", flexible="0+"):
    """Act on this request as if its client had sent it to you."""

    request_data: bytes = bytestring()  # the client's request, header and body
    # who the client is, in the form that the principal builder gives it
    request_principal: bytes | None = bytestring(nullable="0+")
    client_host_address: bytes = bytestring()  # the client's IP address, 4 or 16 bytes


class EnvelopeResponse(Response, api_key=58, versions="0", flexible="0+"):
    """What to pass back to the client."""

    response_data: bytes | None = bytestring(nullable="0+", default=None)  # header and body; null with an error
    error_code: int = int16()
