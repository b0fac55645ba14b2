"""Envelope (key 58): a broker forwards a client's request to the controller (KIP-590)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, bytestring, int16


class EnvelopeRequest(Request, api_key=58, versions="0", flexible="0+"):
    """Process the enclosed request as if its client had sent it to the controller."""

    request_data: bytes = bytestring()  # the client's request: header and body
    # the client's principal, as the principal builder serializes it
    request_principal: bytes | None = bytestring(nullable="0+")
    client_host_address: bytes = bytestring()  # the client's IP address, 4 or 16 bytes


class EnvelopeResponse(Response, api_key=58, versions="0", flexible="0+"):
    """The response to forward to the client."""

    # the enclosed response: header and body; null if the request fails
    response_data: bytes | None = bytestring(nullable="0+", default=None)
    error_code: int = int16()
