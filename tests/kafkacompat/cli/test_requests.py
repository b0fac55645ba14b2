"""The blocking connection, against a socket that answers as it is told."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from kafkacompat.cli.requests import BlockingConnection, NoResponseError, parse_address
from kafkacompat.wire import compiler
from kafkacompat.wire.apis.api_versions import ApiVersion, ApiVersionsResponse
from kafkacompat.wire.apis.describe_cluster import DescribeClusterRequest
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse

Answer = Callable[[bytes], "bytes | None"]


@contextmanager
def serve_connection(answer: Answer) -> Iterator[int]:
    """Serve one connection: *answer* is given a request without its size, and returns bytes to send, or None to hang up."""

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as requests:
            while size := requests.read(4):
                reply = answer(requests.read(int.from_bytes(size, "big")))
                if reply is None:
                    return
                connection.sendall(reply)

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(30)


def make_frame(correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


def serve_metadata(last_version: int, first_version: int = 0) -> Answer:
    """Answer ApiVersions with one range for Metadata, and Metadata by an empty cluster with the id of the version."""

    def answer(request: bytes) -> bytes:
        api_key, version, correlation_id = struct.unpack_from(">hhi", request)
        if api_key == 18:
            served = ApiVersion(api_key=3, min_version=first_version, max_version=last_version)
            return make_frame(correlation_id, compiler.encode_message(ApiVersionsResponse(api_keys=[served]), 0))
        tags = b"\0" if version >= 9 else b""
        response = MetadataResponse(cluster_id=f"version {version}")
        return make_frame(correlation_id, tags + compiler.encode_message(response, version))

    return answer


@pytest.mark.parametrize(("last_version", "version"), [(2, 2), (12, 12), (99, 13)])
def test_the_highest_shared_version_is_used(last_version: int, version: int) -> None:
    with serve_connection(serve_metadata(last_version)) as port, BlockingConnection("127.0.0.1", port) as connection:
        assert connection.find_version(MetadataRequest) == version
        response = connection.request(MetadataRequest(topics=None), MetadataResponse)
        assert response.cluster_id == f"version {version}"
        assert connection.find_version(DescribeClusterRequest) is None


def test_an_api_without_a_shared_version_is_not_requested() -> None:
    with (
        serve_connection(serve_metadata(99, 50)) as port,
        BlockingConnection("127.0.0.1", port) as connection,
        pytest.raises(NoResponseError, match="it serves no known version of Metadata"),
    ):
        connection.request(MetadataRequest(topics=None), MetadataResponse)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (None, "it closes the connection"),
        (struct.pack(">i", -1), "it announces a response of -1 bytes"),
        (b"HTTP", "it announces a response of 1213486160 bytes, so it is no Kafka broker"),
        (make_frame(7, b""), "the correlation id 7 of no request"),
        (make_frame(1, b"\0\0\0\0\1\0"), "api_keys has the length 256"),
    ],
)
def test_a_response_that_cannot_be_read(reply: bytes | None, words: str) -> None:
    with serve_connection(lambda _: reply) as port:
        with pytest.raises(NoResponseError) as problem:
            BlockingConnection("127.0.0.1", port)
        assert words in str(problem.value)


def test_a_broker_that_does_not_answer_in_time() -> None:
    with (
        serve_connection(lambda _: b"") as port,
        pytest.raises(NoResponseError, match=r"it does not answer within 0\.01 s"),
    ):
        BlockingConnection("127.0.0.1", port, timeout_s=0.01)


def test_a_refused_connection_is_reported() -> None:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(NoResponseError, match="Connection refused"):
            BlockingConnection("127.0.0.1", bound.getsockname()[1])


def test_addresses() -> None:
    assert parse_address(" kafka-1.local:9092 ") == ("kafka-1.local", 9092)
    assert parse_address("[::1]:9") == ("::1", 9)
    for text in ("", ":9092", "host", "host:", "host:0", "host:65536", "host:port"):
        with pytest.raises(ValueError, match="is not of the form HOST:PORT"):
            parse_address(text)
