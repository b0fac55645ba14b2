"""One connection of the doctor: requests one by one, and the evidence that remains if a request gets no response."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeVar

from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.wire import compiler
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.headers import ResponseHeader, encode_request, response_header_version
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.schema import Request, Response, Versions

if TYPE_CHECKING:
    from kafkacompat.cli.remote.doctor.network import Stream

CLIENT_ID = "kafkacompat-doctor"
MAX_RESPONSE_BYTES = 100 * 1024 * 1024
ResponseType = TypeVar("ResponseType", bound=Response)


class ExchangeError(Exception):
    """A request got no response that can be read. The text is a predicate of the peer, such as "closes the connection".

    ``received`` holds the first bytes that came instead of a response.
    """

    def __init__(self, text: str, received: bytes = b"") -> None:
        super().__init__(text)
        self.received = received


class MissingApiError(ExchangeError):
    """The broker serves no version of an API that the doctor knows."""


class WireConnection:
    """Sends requests over a stream, one at a time."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._correlation_id = 0
        self.served: dict[int, Versions] = {}

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def request_versions(self) -> dict[int, Versions]:
        """Request the served versions by API key, which later requests need; raises ExchangeError."""
        response = self._exchange(ApiVersionsRequest(), ApiVersionsResponse, 0)
        self.served = {api.api_key: Versions(api.min_version, api.max_version) for api in response.api_keys}
        return self.served

    def request(self, request: Request, response: type[ResponseType], last: int = 99) -> ResponseType:
        """Return the response in the highest shared version, *last* at most; raises ExchangeError."""
        served = self.served.get(request.API_KEY, Versions(0, -1))
        version = min(served.last, request.VERSIONS.last, last)
        if version < max(served.first, request.VERSIONS.first):
            name = type(request).__name__.removesuffix("Request")
            raise MissingApiError(f"serves no known version of {name}")
        return self._exchange(request, response, version)

    def request_unasked(self, request: Request, response: type[ResponseType], version: int) -> ResponseType:
        """Return the response in a version that the broker need not have listed; raises ExchangeError."""
        return self._exchange(request, response, version)

    def _exchange(self, request: Request, response: type[ResponseType], version: int) -> ResponseType:
        self._correlation_id += 1
        payload = encode_request(request, version, self._correlation_id, CLIENT_ID)
        received = bytearray()
        try:
            self._stream.sendall(struct.pack(">i", len(payload)) + payload)
            self._receive_frame(received)
            return self._parse(bytes(received[4:]), response, version)
        except TimeoutError:
            raise ExchangeError("does not answer in time", bytes(received[:64])) from None
        except OSError as problem:
            raise ExchangeError(f"breaks the connection ({describe_error(problem)})", bytes(received[:64])) from None
        except MalformedError as problem:
            raise ExchangeError(f"sends a response that cannot be read ({problem})", bytes(received[:64])) from None

    def _receive_frame(self, received: bytearray) -> None:
        self._receive(received, 4)
        (size_bytes,) = struct.unpack(">i", received)
        if not 0 <= size_bytes <= MAX_RESPONSE_BYTES:
            raise ExchangeError("sends bytes that are not Kafka's protocol", bytes(received))
        self._receive(received, 4 + size_bytes)

    def _receive(self, received: bytearray, size_bytes: int) -> None:
        while len(received) < size_bytes:
            part = self._stream.recv(min(size_bytes - len(received), 1 << 20))
            if not part:
                raise ExchangeError("closes the connection", bytes(received[:64]))
            received += part

    def _parse(self, frame: bytes, response: type[ResponseType], version: int) -> ResponseType:
        header_version = response_header_version(response, version)
        header, position = compiler.find_reader(ResponseHeader, header_version)(frame, 0)
        if header.correlation_id != self._correlation_id:
            raise ExchangeError("sends a response to no request", frame[:64])
        body: ResponseType = compiler.find_reader(response, version)(frame, position)[0]
        return body
