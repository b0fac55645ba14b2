"""A network for the doctor whose hosts are functions: each connection is a pair of sockets, and a thread that serves one end."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from kafkacompat.wire import compiler
from kafkacompat.wire.apis.api_versions import ApiVersion, ApiVersionsResponse
from kafkacompat.wire.apis.create_topics import CreatableTopicResult, CreateTopicsResponse
from kafkacompat.wire.apis.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkacompat.wire.apis.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkacompat.wire.apis.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.headers import RequestHeader, request_header_version, response_header_version
from kafkacompat.wire.releases import find_release
from kafkacompat.wire.schema import Request, Response
from tests.fakes.certificates import Member

RequestType = TypeVar("RequestType", bound=Request)
NOW_S = 4_100_000_000.0
"""Far in the future, since OpenSSL goes by the real clock."""
Handler = Callable[[socket.socket], None]


class FakeNetwork:
    """Hosts by name with their addresses, and what listens at an address and port: a handler, or the error of a connection."""

    def __init__(self, names: Mapping[str, list[str]], ports: dict[tuple[str, int], Handler | OSError]) -> None:
        self._names = names
        self.ports = ports
        self.time_s = NOW_S

    def resolve(self, host: str, port: int) -> list[str]:
        if host.replace(".", "").isdecimal():
            return [host]
        if host not in self._names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._names[host]

    def connect(self, address: str, port: int, timeout_s: float) -> socket.socket:
        handler = self.ports.get((address, port), ConnectionRefusedError(111, "Connection refused"))
        if isinstance(handler, OSError):
            raise handler
        near, far = socket.socketpair()
        near.settimeout(timeout_s)
        threading.Thread(target=self._serve, args=(handler, far), daemon=True).start()
        return near

    def _serve(self, handler: Handler, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            handler(connection)

    def now_s(self) -> float:
        self.time_s += 0.002
        return self.time_s

    def sleep(self, seconds: float) -> None:
        self.time_s += seconds


def answer_always(answer: bytes) -> Handler:
    """Return a server that sends these bytes for the first that it receives, and closes the connection."""

    def handle(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(answer)

    return handle


def answer_words(words: Mapping[bytes, bytes]) -> Handler:
    """Return a server that answers some beginnings of what it receives, and closes the connection for all others."""

    def handle(connection: socket.socket) -> None:
        received = connection.recv(1 << 16)
        connection.sendall(next((answer for word, answer in words.items() if received.startswith(word)), b""))

    return handle


def wait_for_ever(connection: socket.socket) -> None:
    """Read and never answer."""
    while connection.recv(1 << 16):
        pass


class FakeBroker:
    """A broker that serves what Kafka 3.9 serves, on plain connections or with TLS, and keeps the last batch."""

    def __init__(self, tls: ssl.SSLContext | None = None, mechanisms: tuple[str, ...] = ()) -> None:
        self.advertised = {1: ("kafka-1", 9092)}
        self.cluster_id = "cluster"
        self.errors: dict[str, ErrorCode] = {}
        self.on_create: Callable[[], object] = lambda: None
        """Called for each topic that a client creates; an OSError closes the connection."""
        self.clock_ahead_s = 0.0
        self.topics: set[str] = set()
        self.deleted: set[str] = set()
        self.served = dict(find_release("3.9").versions)
        self._tls, self._mechanisms = tls, mechanisms
        self._batch = b""
        self.time_s: Callable[[], float] = lambda: NOW_S

    def __call__(self, connection: socket.socket) -> None:
        stream = connection if self._tls is None else self._tls.wrap_socket(connection, server_side=True)
        is_authenticated = not self._mechanisms
        with stream, stream.makefile("rb") as requests:
            while size := requests.read(4):
                if int.from_bytes(size, "big") > 1 << 20:
                    return
                frame = requests.read(int.from_bytes(size, "big"))
                api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
                if not is_authenticated and api_key not in (17, 18, 36):
                    return
                response = self._respond(api_key, version, frame)
                is_authenticated |= isinstance(response, SaslAuthenticateResponse) and not response.error_code
                tags = b"\0" if response_header_version(type(response), version) else b""
                body = struct.pack(">i", correlation_id) + tags + compiler.encode_message(response, version)
                stream.sendall(struct.pack(">i", len(body)) + body)

    def _respond(self, api_key: int, version: int, frame: bytes) -> Response:
        if api_key == 18:
            keys = [
                ApiVersion(api_key=key, min_version=span.first, max_version=span.last)
                for key, span in self.served.items()
            ]
            return ApiVersionsResponse(api_keys=keys)
        if api_key == 3:
            return self._describe(decode(MetadataRequest, version, frame))
        if api_key == 17:
            return self._shake_hands(decode(SaslHandshakeRequest, version, frame))
        if api_key == 36:
            token = bytes(decode(SaslAuthenticateRequest, version, frame).auth_bytes)
            is_right = token == b"\0alice\0alice-secret"
            return SaslAuthenticateResponse(error_code=0 if is_right else 58, error_message=None if is_right else "no")
        if api_key == 0:
            return self._append(decode(ProduceRequest, version, frame))
        if api_key == 1:
            data = PartitionData(error_code=self._code("fetch"), records=self._batch)
            return FetchResponse(responses=[FetchableTopicResponse(partitions=[data])])
        if api_key == 19:
            self.on_create()
            return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=self._code("create"))])
        assert api_key == 20
        self.deleted.add("the topic")
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name="t", error_code=self._code("delete"))])

    def _code(self, step: str) -> int:
        return self.errors.get(step, ErrorCode.NONE)

    def _describe(self, request: MetadataRequest) -> MetadataResponse:
        brokers = [
            MetadataResponseBroker(node_id=node, host=host, port=port) for node, (host, port) in self.advertised.items()
        ]
        partition = MetadataResponsePartition(leader_id=1)
        topics = [MetadataResponseTopic(name=topic.name, partitions=[partition]) for topic in request.topics or ()]
        return MetadataResponse(brokers=brokers, cluster_id=self.cluster_id, controller_id=1, topics=topics)

    def _shake_hands(self, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        if not self._mechanisms:
            return SaslHandshakeResponse(error_code=34)
        code = 0 if request.mechanism in self._mechanisms else 33
        return SaslHandshakeResponse(error_code=code, mechanisms=list(self._mechanisms))

    def _append(self, request: ProduceRequest) -> ProduceResponse:
        self._batch = bytes(request.topic_data[0].partition_data[0].records or b"")
        time_ms = int((self.time_s() + self.clock_ahead_s) * 1000)
        outcome = PartitionProduceResponse(error_code=self._code("produce"), log_append_time_ms=time_ms)
        return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[outcome])])


def decode(kind: type[RequestType], version: int, frame: bytes) -> RequestType:
    """Return the request in a frame."""
    _, position = compiler.find_reader(RequestHeader, request_header_version(kind, version))(frame, 0)
    request: RequestType = compiler.find_reader(kind, version)(frame, position)[0]
    return request


def make_server_tls(folder: Path, member: Member) -> ssl.SSLContext:
    """Return the TLS of a server that shows *member*'s certificate."""
    path = folder / f"{len(list(folder.iterdir()))}.pem"
    path.write_text(member.pem())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
