"""The client's side of one connection, without a socket: requests in, parts out; frames in, responses out.

The mirror of `kafkacompat.wire.connection`. Its rules (protocol page "Network" and KIP-511):

* the first request is ApiVersions. Each later one is sent in the highest version that both sides have;
* a broker that does not have the version of ApiVersions answers in the layout of version 0, and is asked again;
* responses arrive in the order of their requests, each with the correlation id of its request. A peer that breaks this
  cannot be understood any more: `ResponseError` is raised, and the connection must be closed.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kafkacompat import __version__
from kafkacompat.wire.apis import API_NAMES, OWN_API_NAMES, find_api
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.produce import ProduceRequest
from kafkacompat.wire.compiler import (
    Part,
    find_reader,
    find_stepwise_reader,
    find_stepwise_writer,
)
from kafkacompat.wire.connection import MAX_SMALL_BYTES, measure_part
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.frames import SIZE
from kafkacompat.wire.headers import (
    API_VERSIONS_KEY,
    ResponseHeader,
    encode_request_header,
    response_header_version,
)
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.schema import NO_VERSIONS, Request, Response, Versions

MAX_CORRELATION_ID = 0x7FFFFFFF
SOFTWARE_NAME = "kafkacompat"

_CORRELATION = struct.Struct(">i")
_CORRELATION_AND_ERROR = struct.Struct(">ih")


class ResponseError(ValueError):
    """The connection must be closed, as its peer breaks the protocol."""


class NoCommonVersionError(ValueError):
    """The two sides have no version of a request in common. It was not sent; the connection stays usable."""


VersionCap = Callable[[int], "int | None"]
"""Returns the highest version of an API key that may be sent: None for no limit, -1 to send none."""


@dataclass(slots=True)
class OutgoingRequest:
    """One sent request; ``response`` is the class of its response.

    The frame of a large request is complete after all steps of ``writing``; each step is short.
    """

    api_key: int
    api_version: int
    correlation_id: int
    response: type[Response]
    writing: Iterator[None] | None = None
    parts: list[Part] | None = None


@dataclass(slots=True)
class IncomingResponse:
    """The response to ``request``; ``body`` is None until it was read.

    The body of a large response is complete after all steps of ``reading``; each step is short.
    """

    request: OutgoingRequest
    body: Response | None = None
    reading: Iterator[None] | None = None


class ClientConnection:
    """Writes the requests to one broker and finds the request of each response.

    The parts of ApiVersions wait in `take_parts` from the beginning. Other requests may be sent once the connection
    `is_negotiated`.
    """

    __slots__ = ("_cap", "_client_id", "_next_correlation_id", "_served", "_unanswered", "_unsent")

    def __init__(self, client_id: str, cap: VersionCap = lambda _: None) -> None:
        self._client_id = client_id
        self._cap = cap
        self._served: dict[int, Versions] | None = None
        self._unsent: deque[OutgoingRequest] = deque()
        self._unanswered: deque[OutgoingRequest] = deque()
        self._next_correlation_id = 0
        self._negotiate(Versions(0, ApiVersionsRequest.VERSIONS.last))

    @property
    def is_negotiated(self) -> bool:
        """Whether the versions of the peer are known."""
        return self._served is not None

    @property
    def in_flight(self) -> int:
        """The number of requests that were sent and have no response yet."""
        return len(self._unanswered)

    # Requests

    def find_version(self, request: type[Request]) -> int:
        """Return the version in which a request is sent: the highest that both sides have and the cap allows.

        Raises NoCommonVersionError.
        """
        assert self._served is not None, "the versions of the peer are not known yet"
        return self._find_version(request, self._served.get(request.API_KEY, NO_VERSIONS))

    def _find_version(self, request: type[Request], theirs: Versions) -> int:
        ours, cap = request.VERSIONS, self._cap(request.API_KEY)
        last = min(ours.last, theirs.last) if cap is None else min(ours.last, theirs.last, cap)
        if last < max(ours.first, theirs.first):
            limit = "" if cap is None else f", at most {cap}"
            raise NoCommonVersionError(
                f"{request.__name__} has the versions {_describe_range(ours)}{limit}, but the peer has {_describe_range(theirs)}"
            )
        return last

    def send(self, request: Request) -> OutgoingRequest:
        """Write a request, which reserves its place in the order of responses; `take_parts` returns its frame.

        Raises NoCommonVersionError. If a request cannot be encoded, this raises and changes nothing. If a step of
        ``writing`` raises, the connection must be closed.
        """
        if isinstance(request, ProduceRequest) and request.acks == 0:
            raise ValueError("Produce with acks=0 has no response")
        return self._send(request, self.find_version(type(request)))

    def _send(self, request: Request, version: int) -> OutgoingRequest:
        response = find_api(request.API_KEY).response
        outgoing = OutgoingRequest(request.API_KEY, version, self._next_correlation_id, response)
        steps = find_stepwise_writer(type(request), version)(request)
        body = next(steps)
        if body is None:
            outgoing.writing = self._write(outgoing, type(request), steps)
        else:
            outgoing.parts = self._build_frame(outgoing, type(request), body)
        self._next_correlation_id = (self._next_correlation_id + 1) & MAX_CORRELATION_ID
        self._unsent.append(outgoing)
        return outgoing

    def _write(
        self, outgoing: OutgoingRequest, request: type[Request], steps: Iterator[list[Part] | None]
    ) -> Iterator[None]:
        for body in steps:
            if body is not None:
                outgoing.parts = self._build_frame(outgoing, request, body)
            yield

    def _build_frame(self, outgoing: OutgoingRequest, request: type[Request], body: list[Part]) -> list[Part]:
        """Return a request as a frame: size, header, body."""
        first = encode_request_header(request, outgoing.api_version, outgoing.correlation_id, self._client_id)
        size = len(first) + sum(map(measure_part, body))
        body[0] = SIZE.pack(size) + first + body[0]  # type: ignore[operator]  # a writer's first part is a buffer
        return body

    def take_parts(self) -> list[Part]:
        """Return the parts of every request that is written and whose turn it is; their responses may arrive now."""
        parts: list[Part] = []
        unsent = self._unsent
        while unsent and unsent[0].parts is not None:
            request = unsent.popleft()
            parts += request.parts  # type: ignore[arg-type]  # not None, as checked
            request.parts = None
            self._unanswered.append(request)
        return parts

    # Responses

    def receive(self, frame: memoryview) -> IncomingResponse | None:
        """Read one frame: the response to the oldest unanswered request. None if it belongs to the negotiation.

        ``records`` fields of the response are memoryviews of the frame. Raises ResponseError, as the steps of reading a
        large response do. After None there may be more parts to take.
        """
        request = self._take_unanswered(frame)
        try:
            if self._served is None:
                self._receive_versions(request, frame)
                return None
            return _read_response(request, frame)
        except MalformedError as problem:
            raise _build_malformed_error(request, problem) from None

    def _take_unanswered(self, frame: memoryview) -> OutgoingRequest:
        if len(frame) < _CORRELATION.size:
            raise ResponseError(f"a response of {len(frame)} bytes has no whole header")
        correlation_id: int = _CORRELATION.unpack_from(frame)[0]
        if not self._unanswered:
            raise ResponseError(f"a response has the correlation id {correlation_id}, but no request is unanswered")
        request = self._unanswered.popleft()
        if correlation_id != request.correlation_id:
            raise ResponseError(
                f"a response has the correlation id {correlation_id}, but the oldest unanswered request has"
                f" {request.correlation_id}"
            )
        return request

    # Negotiation

    def _negotiate(self, theirs: Versions) -> None:
        try:
            version = self._find_version(ApiVersionsRequest, theirs)
        except NoCommonVersionError as problem:
            raise ResponseError(str(problem)) from None
        self._send(ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__), version)

    def _receive_versions(self, request: OutgoingRequest, frame: memoryview) -> None:
        if len(frame) < _CORRELATION_AND_ERROR.size:
            raise MalformedError(f"it has {len(frame)} bytes")
        error_code = _CORRELATION_AND_ERROR.unpack_from(frame)[1]
        is_unknown_version = error_code == ErrorCode.UNSUPPORTED_VERSION
        response = _read_versions(frame, 0 if is_unknown_version else request.api_version)
        if is_unknown_version and request.api_version > 0:
            listed = _find_listed(response).get(API_VERSIONS_KEY, Versions(0, 0))
            self._negotiate(Versions(listed.first, min(listed.last, request.api_version - 1)))
        elif error_code:
            raise ResponseError(f"the peer answers ApiVersions v{request.api_version} with the error {error_code}")
        else:
            self._served = _find_listed(response)


def _read_versions(frame: memoryview, version: int) -> ApiVersionsResponse:
    response: ApiVersionsResponse = find_reader(ApiVersionsResponse, version)(frame, _CORRELATION.size)[0]
    return response


def _find_listed(response: ApiVersionsResponse) -> dict[int, Versions]:
    """Return the listed versions of the APIs that this side knows, by key."""
    return {
        listed.api_key: Versions(listed.min_version, listed.max_version)
        for listed in response.api_keys
        if listed.api_key in API_NAMES or listed.api_key in OWN_API_NAMES
    }


def _read_response(request: OutgoingRequest, frame: memoryview) -> IncomingResponse:
    """Read a response, or make the first step of reading a large one, which completes most of them."""
    message, version = request.response, request.api_version
    position = find_reader(ResponseHeader, response_header_version(message, version))(frame, 0)[1]
    response = IncomingResponse(request)
    if len(frame) <= MAX_SMALL_BYTES:
        response.body = find_reader(message, version)(frame, position)[0]
        return response
    steps = find_stepwise_reader(message, version)(frame, position)
    result = next(steps)
    if result is None:
        response.reading = _continue_reading(response, steps)
    else:
        response.body = result[0]
    return response


def _continue_reading(response: IncomingResponse, steps: Iterator[tuple[Any, int] | None]) -> Iterator[None]:
    try:
        for result in steps:
            if result is not None:
                response.body = result[0]
            yield
    except MalformedError as problem:
        raise _build_malformed_error(response.request, problem) from None


def _build_malformed_error(request: OutgoingRequest, problem: MalformedError) -> ResponseError:
    return ResponseError(f"{request.response.__name__} v{request.api_version} cannot be read: {problem}")


def _describe_range(versions: Versions) -> str:
    return f"{versions.first} to {versions.last}" if versions.first <= versions.last else "none"
