"""The broker's side of one connection, without a socket: frames in, requests out; responses in, parts out.

Its rules (protocol page "Network" and KIP-511):

* a request is parsed with the header version that its API version prescribes;
* an unknown version of ApiVersions yields a request without a body; any other request that is not served raises
  `RequestError`, and the connection is closed, as Kafka does;
* responses leave in the order of their requests, whichever is ready first.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kafkacompat.wire.compiler import Part, find_reader, find_stepwise_reader, find_stepwise_writer
from kafkacompat.wire.headers import API_VERSIONS_KEY, RequestHeader, request_header_version, response_header_version
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.schema import Request, Response, Versions, bytestring

_KEY_AND_VERSION = struct.Struct(">hh")
_SIZE = struct.Struct(">i")
_SIZE_AND_CORRELATION = struct.Struct(">ii")
_BUFFERS = (bytes, bytearray, memoryview)


MAX_SMALL_BYTES = 4096
"""A larger request is read, and handled, in several turns, as it may hold many elements."""


class RequestError(ValueError):
    """The connection must be closed, as its request cannot be answered."""


class EncodedResponse(Response, api_key=-1, versions=""):
    """A response that another broker has encoded, of any API: header and body, without the frame's size."""

    data: bytes = bytestring()

    def list_parts(self) -> list[Part]:
        """Return the parts that leave: the frame's size and the response."""
        return [_SIZE.pack(len(self.data)), self.data]


class EncodedFrames(EncodedResponse, api_key=-1, versions=""):
    """Bytes that leave in place of one response: whole frames, each with its size."""

    data: bytes = bytestring()

    def list_parts(self) -> list[Part]:
        """Return the parts that leave."""
        return [self.data]


class ServedApi(Protocol):
    """A served API, as far as the connection needs it."""

    @property
    def request(self) -> type[Request]: ...
    @property
    def versions(self) -> Versions: ...


@dataclass(slots=True)
class IncomingRequest:
    """One request; ``body`` is None for an unknown version of ApiVersions, and after the response.

    The body of a large request is complete after all steps of ``reading``; each step is short. ``size_bytes`` are those of header
    and body. ``meter`` and ``trace`` belong to the caller, which may charge and measure the request.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    body: Request | None
    size_bytes: int
    reading: Iterator[None] | None = None
    answer: list[Part] | None = None
    answer_bytes: int = 0
    answered: bool = False
    meter: Any = None
    trace: Any = None


class ServerConnection:
    """Parses the requests of one client and returns the responses in order.

    ``waiting_bytes`` is the memory of responses that wait for their turn; file regions take none.
    """

    __slots__ = ("_served", "_waiting", "waiting_bytes")

    def __init__(self, served: Mapping[int, ServedApi]) -> None:
        self._served = served
        self._waiting: deque[IncomingRequest] = deque()
        self.waiting_bytes = 0

    @property
    def in_flight(self) -> int:
        """The number of parsed requests whose responses have not left."""
        return len(self._waiting)

    def parse(self, frame: memoryview) -> IncomingRequest:
        """Parse one frame into a request, which reserves its place in the order of responses.

        Raises RequestError if the frame cannot be answered; the steps of reading a large request raise it as well.
        """
        try:
            request = self._parse(frame)
        except MalformedError as problem:
            raise RequestError(str(problem)) from None
        self._waiting.append(request)
        return request

    def _parse(self, frame: memoryview) -> IncomingRequest:
        served, api_version = self._find_api(frame)
        header_version = request_header_version(served.request, api_version)
        header, position = find_reader(RequestHeader, header_version)(frame, 0)
        client_id = header.client_id or ""
        request = IncomingRequest(
            header.request_api_key, api_version, header.correlation_id, client_id, None, len(frame)
        )
        if api_version in served.versions:
            if len(frame) > MAX_SMALL_BYTES:
                request.reading = _start_reading(
                    request, find_stepwise_reader(served.request, api_version)(frame, position)
                )
            else:
                request.body = find_reader(served.request, api_version)(frame, position)[0]
        return request

    def _find_api(self, frame: memoryview) -> tuple[ServedApi, int]:
        """Return the requested API and version; raises RequestError if it is not served."""
        if len(frame) < 8:
            raise RequestError(f"a request of {len(frame)} bytes has no whole header")
        api_key, api_version = _KEY_AND_VERSION.unpack_from(frame)
        served = self._served.get(api_key)
        if served is None:
            raise RequestError(f"API key {api_key} is not served")
        if api_version not in served.versions and api_key != API_VERSIONS_KEY:
            raise RequestError(f"{served.request.__name__} v{api_version} is not served")
        return served, api_version

    def answer(self, request: IncomingRequest, response: Response | None, version: int) -> Iterator[None] | None:
        """Store the response of a request, or None if the protocol has none (Produce with acks=0).

        A large response is complete after all of the returned steps; each is short. The request drops its body, which may be
        large, while the response waits for its turn. If a response cannot be encoded, this raises and changes nothing.
        """
        if response is None:
            self._store_answer(request)
            return None
        if isinstance(response, EncodedResponse):
            self._store_answer(request, response.list_parts())
            return None
        steps = find_stepwise_writer(type(response), version)(response)
        parts = next(steps)
        if parts is None:
            return self._write(request, response, version, steps)
        self._store_answer(request, _build_frame(request, response, version, parts))
        return None

    def _write(
        self, request: IncomingRequest, response: Response, version: int, steps: Iterator[list[Part] | None]
    ) -> Iterator[None]:
        for parts in steps:
            if parts is not None:
                self._store_answer(request, _build_frame(request, response, version, parts))
            yield

    def _store_answer(self, request: IncomingRequest, answer: list[Part] | None = None) -> None:
        if answer is not None:
            request.answer = answer
            request.answer_bytes = sum(len(part) for part in answer if isinstance(part, _BUFFERS))
            self.waiting_bytes += request.answer_bytes
        request.answered = True
        request.body = None

    def take_parts(self) -> list[Part]:
        """Return the parts of every response whose turn it is."""
        parts: list[Part] = []
        waiting = self._waiting
        while waiting and waiting[0].answered:
            request = waiting.popleft()
            if request.answer is not None:
                parts += request.answer
                self.waiting_bytes -= request.answer_bytes
        return parts

    def abandon(self) -> list[Part]:
        """Drop every request, as the connection is closed; return the parts that will never leave."""
        parts = [part for request in self._waiting for part in request.answer or ()]
        self._waiting.clear()
        self.waiting_bytes = 0
        return parts


def _start_reading(request: IncomingRequest, steps: Iterator[tuple[Any, int] | None]) -> Iterator[None] | None:
    """Make the first step, which completes most requests; return the other steps, or None."""
    progress = next(steps)
    if progress is None:
        return _continue_reading(request, steps)
    request.body = progress[0]
    return None


def _continue_reading(request: IncomingRequest, steps: Iterator[tuple[Any, int] | None]) -> Iterator[None]:
    try:
        for progress in steps:
            if progress is not None:
                request.body = progress[0]
            yield
    except MalformedError as problem:
        raise RequestError(str(problem)) from None


def _build_frame(request: IncomingRequest, response: Response, version: int, parts: list[Part]) -> list[Part]:
    """Return the response as a frame: size, header, body."""
    tags = b"\0" if response_header_version(type(response), version) else b""
    size = 4 + len(tags) + sum(measure_part(part) for part in parts)
    first = bytearray(_SIZE_AND_CORRELATION.pack(size, request.correlation_id))
    first += tags
    first += parts[0]  # type: ignore[arg-type]  # a writer's first part is always a buffer
    parts[0] = first
    return parts


def measure_part(part: Part) -> int:
    """Return the bytes of a buffer or a file region."""
    return len(part) if isinstance(part, _BUFFERS) else part.size_bytes


def measure_response(response: Response, version: int) -> Iterator[int]:
    """Yield the bytes of a response as Kafka counts them for quotas: with the frame's size, without the header.

    It yields 0 after each step of a large response, and the size last.
    """
    for parts in find_stepwise_writer(type(response), version)(response):
        yield 0 if parts is None else _SIZE.size + sum(measure_part(part) for part in parts)
