"""The protocol by hand: one blocking connection, requests and answers as the wire layer declares them."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, TypeVar

from kafkacompat.wire import compiler
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.headers import ResponseHeader, encode_request, response_header_version
from kafkacompat.wire.schema import Request, Response

if TYPE_CHECKING:
    import ssl

    from typing_extensions import Self

Answer = TypeVar("Answer", bound=Response)


class ClosedError(Exception):
    """The broker closed the connection instead of answering."""


class RawClient:
    """One connection. It retries and checks nothing: tests decide on every byte that it sends.

    ``address`` is the loopback address that it comes from, for tests that distinguish clients; with ``tls`` it shakes hands.
    """

    def __init__(
        self,
        port: int,
        *,
        timeout_seconds: float = 30,
        client_id: str | None = "raw-client",
        host: str = "127.0.0.1",
        address: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.client_id = client_id
        source = None if address is None else (address, 0)
        self.socket = socket.create_connection((host, port), timeout_seconds, source_address=source)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def call(self, request: Request, answer: type[Answer], version: int) -> Answer:
        """Send one request and return its answer; raises ClosedError where the broker hangs up."""
        self.send(request, version)
        return self.receive(answer, version)

    def send(self, request: Request, version: int) -> None:
        """Send one request without waiting for its answer."""
        self.send_frame(self.encode(request, version))

    def encode(self, request: Request, version: int) -> bytes:
        """Return header and body of one request, without the frame's size."""
        self._correlation_id += 1
        return encode_request(request, version, self._correlation_id, self.client_id)

    def send_frame(self, payload: bytes) -> None:
        """Send *payload* after its size."""
        self.socket.sendall(struct.pack(">i", len(payload)) + payload)

    def receive(self, answer: type[Answer], version: int) -> Answer:
        """Return the next answer on the connection."""
        return self.decode(self.receive_frame(), answer, version)

    def decode(self, frame: bytes | memoryview, answer: type[Answer], version: int) -> Answer:
        """Return the answer in a frame."""
        header_version = response_header_version(answer, version)
        header, position = compiler.find_reader(ResponseHeader, header_version)(frame, 0)
        assert 0 < header.correlation_id <= self._correlation_id, header
        decoded: Answer = compiler.find_reader(answer, version)(frame, position)[0]
        return decoded

    def receive_frame(self) -> bytes:
        """Return the next frame without its size; raises ClosedError at the connection's end."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def is_closed(self) -> bool:
        """Wait for the broker to say something; True when it hung up, False when it sent bytes."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _exactly(self, size_bytes: int) -> bytes:
        data = bytearray()
        while len(data) < size_bytes:
            try:
                part = self.socket.recv(size_bytes - len(data))
            except ConnectionError as problem:
                raise ClosedError(str(problem)) from problem
            if not part:
                raise ClosedError(f"the connection ended after {len(data)} of {size_bytes} bytes")
            data += part
        return bytes(data)


def produce_request(topic: str, batches: dict[int, bytes], *, acks: int = -1) -> ProduceRequest:
    """Return a Produce request (up to version 12) of one batch a partition of one topic."""
    partitions = [PartitionProduceData(index=index, records=batch) for index, batch in batches.items()]
    return ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=partitions)]
    )


def fetch_request(topic: str, offsets: dict[int, int], *, max_wait_ms: int = 500) -> FetchRequest:
    """Return a sessionless Fetch (up to version 12) of up to 1 MiB a partition."""
    wanted = [
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20)
        for number, offset in offsets.items()
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=50 << 20, topics=[FetchTopic(topic=topic, partitions=wanted)]
    )
