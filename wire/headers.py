"""The headers in front of every request and response body, and which version of them a body takes.

A request says its API and version in the first four bytes, in the same place in every header
version, so a reader looks there first and then reads the whole header.
"""

from __future__ import annotations

from kafkacompat.wire.schema import Message, Request, Response, int16, int32, string

API_VERSIONS_KEY = 18
CONTROLLED_SHUTDOWN_KEY = 7


class RequestHeader(Message, versions="0-2", flexible="2+"):
    """What a client writes before the request body."""

    request_api_key: int = int16()
    request_api_version: int = int16()
    correlation_id: int = int32()
    # Keeps its two-byte length in version 2: a broker must find it before it knows the version is any good.
    client_id: str | None = string(versions="1+", nullable="1+", flexible=False)


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    """What the broker writes before the response body."""

    correlation_id: int = int32()


def request_header_version(request: type[Request], version: int) -> int:
    """Return the RequestHeader version that goes with *version* of an API; the version need not be one we serve.

    Only the first version of ControlledShutdown has no client id in its header.
    """
    if version in request.FLEXIBLE:
        return 2
    return 0 if version == 0 and request.API_KEY == CONTROLLED_SHUTDOWN_KEY else 1


def response_header_version(message: type[Request | Response], version: int) -> int:
    """Return the ResponseHeader version that goes with *version* of an API.

    ApiVersions answers always have version 0: its client does not know yet what the broker speaks (KIP-511).
    """
    return 1 if version in message.FLEXIBLE and message.API_KEY != API_VERSIONS_KEY else 0
