"""Requests of the command line: one blocking connection, with the versions that the broker and this project share."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING, Any, TypeVar

from kafkacompat.cli.command_config import ClientSecurity
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.wire import compiler
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.headers import ResponseHeader, encode_request, response_header_version
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.schema import Request, Response

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafkacompat.cli.tls_stream import TlsStream
    from kafkacompat.security.sasl.client import Login
    from kafkacompat.security.tls.client import ClientTls

ANSWER_TIMEOUT_S = 10.0
MAX_RESPONSE_BYTES = 100 * 1024 * 1024
CLIENT_ID = "kafkacompat"
NO_SECURITY = ClientSecurity()
DEFAULT_PORT = 9092

ResponseType = TypeVar("ResponseType", bound=Response)
ConnectionType = TypeVar("ConnectionType")

_TLS_ALERT = b"\x15\x03"
"""The beginning of what a TLS server returns for bytes that are no TLS."""
_ADVICE: dict[type[OSError], str] = {
    ConnectionRefusedError: ", so check that the broker runs and that the port is right",
    socket.gaierror: ", so check the name of the host",
}


class NoResponseError(Exception):
    """A broker returns no response, or one that cannot be read; the text says why."""


class UnservedRequestError(NoResponseError):
    """A broker and this project have no version of an API in common."""


def parse_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT, with an IPv6 address in brackets; raises ValueError."""
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text.strip()!r} is not of the form HOST:PORT")
    return host.strip("[]"), int(port)


def connect_first(
    addresses: Iterable[tuple[str, int]], connect: Callable[[str, int], ConnectionType]
) -> ConnectionType:
    """Connect to the first of *addresses* that answers; raises NoResponseError, which names each address."""
    problems = []
    for host, port in addresses:
        try:
            return connect(host, port)
        except NoResponseError as problem:
            problems.append(f"{host}:{port}: {problem}")
    raise NoResponseError("; ".join(problems))


class BlockingConnection:
    """A connection to one broker. After connecting, each response may take *answer_timeout_s*."""

    def __init__(
        self,
        host: str,
        port: int,
        timeout_s: float = ANSWER_TIMEOUT_S,
        *,
        security: ClientSecurity = NO_SECURITY,
        answer_timeout_s: float | None = None,
    ) -> None:
        """Connect, request the broker's versions, and authenticate; raises NoResponseError."""
        self._correlation_id = 0
        self._socket = _connect(host, port, timeout_s, security.tls)
        try:
            served = self._exchange(ApiVersionsRequest(), ApiVersionsResponse, 0).api_keys
            self._served = {api.api_key: (api.min_version, api.max_version) for api in served}
            if security.login is not None:
                self._log_in(security.login)
        except NoResponseError:
            self.close()
            raise
        if answer_timeout_s is not None:
            self._socket.settimeout(answer_timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def find_version(self, request: type[Request]) -> int | None:
        """Return the highest version of an API that both sides have, or None."""
        first, last = self._served.get(request.API_KEY, (0, -1))
        version = min(last, request.VERSIONS.last)
        return version if version >= max(first, request.VERSIONS.first) else None

    def request(self, request: Request, response: type[ResponseType]) -> ResponseType:
        """Send a request and return its response; raises NoResponseError."""
        version = self.find_version(type(request))
        if version is None:
            raise UnservedRequestError(
                f"it serves no known version of {type(request).__name__.removesuffix('Request')}"
            )
        return self._exchange(request, response, version)

    def _log_in(self, login: Login) -> None:
        # A command without SASL does not pay for these modules.
        from kafkacompat.client.login import BrokerLogin, LoginError
        from kafkacompat.security.scram import draw_nonce
        from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateResponse
        from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

        authentication = BrokerLogin(login, partial(draw_nonce, SystemRandom()))
        try:
            request: Request | None = authentication.begin()
            while request is not None:
                is_handshake = isinstance(request, SaslHandshakeRequest)
                kind = SaslHandshakeResponse if is_handshake else SaslAuthenticateResponse
                answer: Any = self.request(request, kind)
                if is_handshake and answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
                    raise NoResponseError("the listener has no SASL, so name another security.protocol or another port")
                request = authentication.receive(answer)
        except LoginError as problem:
            raise NoResponseError(str(problem)) from None

    def _exchange(self, request: Request, response: type[ResponseType], version: int) -> ResponseType:
        self._correlation_id += 1
        payload = encode_request(request, version, self._correlation_id, CLIENT_ID)
        try:
            self._socket.sendall(struct.pack(">i", len(payload)) + payload)
            return self._parse_response(self._receive_frame(), response, version)
        except TimeoutError as problem:
            raise NoResponseError(f"it does not answer within {self._socket.gettimeout():g} s") from problem
        except (OSError, MalformedError) as problem:
            raise NoResponseError(describe_error(problem)) from problem

    def _parse_response(self, frame: bytes, response: type[ResponseType], version: int) -> ResponseType:
        header_version = response_header_version(response, version)
        header, position = compiler.find_reader(ResponseHeader, header_version)(frame, 0)
        if header.correlation_id != self._correlation_id:
            raise NoResponseError(f"its response has the correlation id {header.correlation_id} of no request")
        body: ResponseType = compiler.find_reader(response, version)(frame, position)[0]
        return body

    def _receive_frame(self) -> bytes:
        prefix = self._receive(4)
        if prefix.startswith(_TLS_ALERT):
            raise NoResponseError("the listener speaks TLS, so name security.protocol in a file for --command-config")
        (size_bytes,) = struct.unpack(">i", prefix)
        if not 0 <= size_bytes <= MAX_RESPONSE_BYTES:
            raise NoResponseError(f"it announces a response of {size_bytes} bytes, so it is no Kafka broker")
        return self._receive(size_bytes)

    def _receive(self, size_bytes: int) -> bytes:
        data = bytearray()
        while len(data) < size_bytes:
            part = self._socket.recv(min(size_bytes - len(data), 1 << 20))
            if not part:
                raise NoResponseError(
                    "it closes the connection, as listeners with TLS or SASL do, for which there is --command-config"
                )
            data += part
        return bytes(data)


def _connect(host: str, port: int, timeout_s: float, tls: ClientTls | None) -> socket.socket | TlsStream:
    """Connect, with TLS if it is given; raises NoResponseError."""
    try:
        plain = socket.create_connection((host, port), timeout_s)
    except (OSError, UnicodeError) as problem:
        advice = next((words for kind, words in _ADVICE.items() if isinstance(problem, kind)), "")
        raise NoResponseError(describe_error(problem) + advice) from problem
    if tls is None:
        return plain
    from kafkacompat.cli.tls_stream import TlsStream

    try:
        return TlsStream(plain, tls, host)
    except TimeoutError as problem:
        plain.close()
        raise NoResponseError(f"it does not answer within {timeout_s:g} s") from problem
    except OSError as problem:
        plain.close()
        raise NoResponseError(describe_error(problem)) from problem
