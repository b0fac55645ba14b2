"""The broker's side of one connection, without a socket: frames in, requests out; answers in, parts out.

The rules it keeps (protocol page "Network" and KIP-511):

* a request is parsed with the header version that its API version prescribes;
* a version of ApiVersions that we do not know is handed on without a body, everything else that is
  not served raises `RequestError`, upon which the connection is closed as Kafka closes it;
* answers leave in the order in which their requests came, whichever is ready first.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kafkacompat.wire.compiler import Part, reader, steps_of_reading, steps_of_writing
from kafkacompat.wire.headers import API_VERSIONS_KEY, RequestHeader, request_header_version, response_header_version
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.schema import Request, Response, Versions

_KEY_AND_VERSION = struct.Struct(">hh")
_SIZE_AND_CORRELATION = struct.Struct(">ii")
_BUFFERS = (bytes, bytearray, memoryview)


MAX_SMALL_BYTES = 4096
"""A larger request may have so much in it that it is read, and handled, in several turns."""


class RequestError(ValueError):
    """The connection has to be closed: nothing that could be answered was asked."""


class Served(Protocol):
    """What the connection has to know of one API that is served."""

    @property
    def request(self) -> type[Request]: ...
    @property
    def versions(self) -> Versions: ...


@dataclass(slots=True)
class IncomingRequest:
    """One request; ``body`` is None when its version of ApiVersions is unknown, and once it is answered.

    The body of a large one is there when all steps of its ``reading`` have been made; they are short.
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


class ServerConnection:
    """Parses the requests of one client and puts the answers in order.

    ``waiting_bytes`` is the memory of the answers that were given and have not left; file regions take none.
    """

    __slots__ = ("_served", "_waiting", "waiting_bytes")

    def __init__(self, served: Mapping[int, Served]) -> None:
        self._served = served
        self._waiting: deque[IncomingRequest] = deque()
        self.waiting_bytes = 0

    @property
    def in_flight(self) -> int:
        """Requests that were parsed and whose answers have not left."""
        return len(self._waiting)

    def parse(self, frame: memoryview) -> IncomingRequest:
        """Turn one frame into a request, which from now on holds its place in the order of answers.

        Raises RequestError when the frame cannot be answered; the steps of reading a large one do so too.
        """
        try:
            request = self._parse(frame)
        except MalformedError as problem:
            raise RequestError(str(problem)) from None
        self._waiting.append(request)
        return request

    def _parse(self, frame: memoryview) -> IncomingRequest:
        served, api_version = self._served_api(frame)
        header_version = request_header_version(served.request, api_version)
        header, position = reader(RequestHeader, header_version)(frame, 0)
        client_id = header.client_id or ""
        request = IncomingRequest(
            header.request_api_key, api_version, header.correlation_id, client_id, None, len(frame)
        )
        if api_version in served.versions:
            if len(frame) > MAX_SMALL_BYTES:
                request.reading = _read(request, steps_of_reading(served.request, api_version)(frame, position))
            else:
                request.body = reader(served.request, api_version)(frame, position)[0]
        return request

    def _served_api(self, frame: memoryview) -> tuple[Served, int]:
        """What is asked for, and in which version."""
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
        """Give the answer of a request, or None where the protocol has none (Produce with acks=0).

        A large one is given when all of the short steps that are returned have been made. The request lets go of its body,
        which may be large, while the answer waits for its turn. Nothing has changed when a response that cannot be encoded
        raises.
        """
        if response is None:
            self._answered(request)
            return None
        steps = steps_of_writing(type(response), version)(response)
        parts = next(steps)
        if parts is None:
            return self._write(request, response, version, steps)
        self._answered(request, _frame(request, response, version, parts))
        return None

    def _write(
        self, request: IncomingRequest, response: Response, version: int, steps: Iterator[list[Part] | None]
    ) -> Iterator[None]:
        for parts in steps:
            if parts is not None:
                self._answered(request, _frame(request, response, version, parts))
            yield

    def _answered(self, request: IncomingRequest, answer: list[Part] | None = None) -> None:
        if answer is not None:
            request.answer = answer
            request.answer_bytes = sum(len(part) for part in answer if isinstance(part, _BUFFERS))
            self.waiting_bytes += request.answer_bytes
        request.answered = True
        request.body = None

    def parts_to_send(self) -> list[Part]:
        """The parts of every answer whose turn it is."""
        parts: list[Part] = []
        waiting = self._waiting
        while waiting and waiting[0].answered:
            request = waiting.popleft()
            if request.answer is not None:
                parts += request.answer
                self.waiting_bytes -= request.answer_bytes
        return parts

    def abandon(self) -> list[Part]:
        """Forget every request (the connection is gone); return the parts that will never leave."""
        parts = [part for request in self._waiting for part in request.answer or ()]
        self._waiting.clear()
        self.waiting_bytes = 0
        return parts


def _read(request: IncomingRequest, steps: Iterator[tuple[Any, int] | None]) -> Iterator[None] | None:
    """Make the first step, which most requests are read in, however large; returns the others if there are any."""
    found = next(steps)
    if found is None:
        return _read_on(request, steps)
    request.body = found[0]
    return None


def _read_on(request: IncomingRequest, steps: Iterator[tuple[Any, int] | None]) -> Iterator[None]:
    try:
        for found in steps:
            if found is not None:
                request.body = found[0]
            yield
    except MalformedError as problem:
        raise RequestError(str(problem)) from None


def _frame(request: IncomingRequest, response: Response, version: int, parts: list[Part]) -> list[Part]:
    """The answer's bytes behind its size and its header."""
    tags = b"\0" if response_header_version(type(response), version) else b""
    size = 4 + len(tags) + sum(_size(part) for part in parts)
    first = bytearray(_SIZE_AND_CORRELATION.pack(size, request.correlation_id))
    first += tags
    first += parts[0]  # type: ignore[arg-type]  # a writer's first part is always a buffer
    parts[0] = first
    return parts


def _size(part: Part) -> int:
    return len(part) if isinstance(part, _BUFFERS) else part.size_bytes
