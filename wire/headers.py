"""The headers of requests and responses, and the header version of each API version.

A request begins with its API and version in every header version, so a reader reads these four bytes first and then
the whole header.
"""

from __future__ import annotations

from kafkacompat.wire.compiler import encode_message
from kafkacompat.wire.schema import Message, Request, Response, int16, int32, string

PRODUCE_KEY = 0
FETCH_KEY = 1
CONTROLLED_SHUTDOWN_KEY = 7
API_VERSIONS_KEY = 18
"""Keys of APIs that layers below the handlers treat in a way of their own."""


class RequestHeader(Message, versions="0-2", flexible="2+"):
    """The header that a client writes before the request body."""

    request_api_key: int = int16()
    request_api_version: int = int16()
    correlation_id: int = int32()
    # Keeps its two-byte length in version 2: a broker reads it before it knows whether it serves the version.
    client_id: str | None = string(versions="1+", nullable="1+", flexible=False)


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    """The header that the broker writes before the response body."""

    correlation_id: int = int32()


def request_header_version(request: type[Request], version: int) -> int:
    """Return the RequestHeader version that goes with *version* of an API; the broker need not serve that version.

    Only the first version of ControlledShutdown has no client id in its header.
    """
    if version in request.FLEXIBLE:
        return 2
    return 0 if version == 0 and request.API_KEY == CONTROLLED_SHUTDOWN_KEY else 1


def encode_request_header(request: type[Request], version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Return the header of a request in *version* of its API."""
    header = RequestHeader(
        request_api_key=request.API_KEY,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return encode_message(header, request_header_version(request, version))


def encode_request(request: Request, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Return the header and the body of a request without file regions; the frame's size is the caller's."""
    header = encode_request_header(type(request), version, correlation_id, client_id)
    return header + encode_message(request, version)


def response_header_version(message: type[Request | Response], version: int) -> int:
    """Return the ResponseHeader version that goes with *version* of an API.

    Responses to ApiVersions always have version 0, as the client does not know the broker's versions yet (KIP-511).
    """
    return 1 if version in message.FLEXIBLE and message.API_KEY != API_VERSIONS_KEY else 0
