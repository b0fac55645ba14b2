"""The raw load client: it encodes requests once and sends them repeatedly, so that the broker's work is measured."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import repeat

from compat_tests import batches
from compat_tests.raw_client import RawClient, fetch_request, produce_request
from kafkacompat.wire.apis.fetch import FetchResponse, PartitionData
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.compiler import decode_message

PRODUCE_VERSION = 9
FETCH_VERSION = 11
RECORD_BYTES = 100
BATCH_BYTES = 16_384
IN_FLIGHT = 5


@dataclass(frozen=True)
class Load:
    """Batches of one size: the bytes of one, and its number of records."""

    batch: bytes
    records: int

    @classmethod
    def of(cls, batch_bytes: int = BATCH_BYTES, record_bytes: int = RECORD_BYTES) -> Load:
        """Fill a batch of about *batch_bytes* with records of incompressible values."""
        records = max(1, batch_bytes // (record_bytes + 8))
        return cls(batches.build([os.urandom(record_bytes) for _ in range(records)], key=None), records)


def produce(
    port: int,
    topic: str,
    load: Load,
    *,
    partitions: int,
    requests: int,
    connections: int = 3,
    tls: ssl.SSLContext | None = None,
) -> int:
    """Send requests with one batch for each partition, five in flight on each connection; return the number of records.

    Raises AssertionError if a response carries an error.
    """
    shares = [requests // connections + (number < requests % connections) for number in range(connections)]
    run_in_threads([partial(_produce_share, port, topic, load, partitions, share, tls) for share in shares])
    return requests * partitions * load.records


def _produce_share(
    port: int, topic: str, load: Load, partitions: int, requests: int, tls: ssl.SSLContext | None
) -> None:
    with RawClient(port, tls=tls) as client:
        frame = produce_frame(client, topic, dict.fromkeys(range(partitions), load.batch))
        send_all(client, repeat(frame, requests))


def produce_frame(client: RawClient, topic: str, batches: dict[int, bytes], acks: int = 1) -> bytes:
    """Encode a frame that holds a Produce request with a batch for each of these partitions."""
    payload = client.encode(produce_request(topic, batches, acks=acks), PRODUCE_VERSION)
    return struct.pack(">i", len(payload)) + payload


def send_all(client: RawClient, frames: Iterable[bytes]) -> None:
    """Send Produce requests, five ahead of the responses; raises AssertionError if a response carries an error."""
    unanswered = 0
    for frame in frames:
        client.socket.sendall(frame)
        unanswered += 1
        if unanswered > IN_FLIGHT:
            check(client.receive(ProduceResponse, PRODUCE_VERSION))
            unanswered -= 1
    for _ in range(unanswered):
        check(client.receive(ProduceResponse, PRODUCE_VERSION))


def check(answer: ProduceResponse) -> None:
    """Raise AssertionError if a response carries an error for any partition."""
    errors = [part.error_code for topic in answer.responses for part in topic.partition_responses if part.error_code]
    assert not errors, f"Produce was answered with the errors {errors}"


def fetch(
    port: int,
    topic: str,
    load: Load,
    *,
    partitions: int,
    until_records: int,
    tls: ssl.SSLContext | None = None,
) -> int:
    """Read every partition from its beginning until *until_records* records were read; return their bytes.

    All batches of the topic are *load*'s, so the next offset follows from the bytes read.
    """
    offsets = dict.fromkeys(range(partitions), 0)
    read_bytes = 0
    buffer = bytearray(64 << 20)
    with RawClient(port, tls=tls) as client:
        while sum(offsets.values()) < until_records:
            client.send(fetch_request(topic, offsets), FETCH_VERSION)
            for part in receive_into(client.socket, buffer).responses[0].partitions:
                assert part.error_code == 0, f"Fetch was answered with the error {part.error_code}"
                whole = records_size(part) // len(load.batch)
                offsets[part.partition_index] += whole * load.records
                read_bytes += whole * len(load.batch)
    return read_bytes


def receive_into(connection: socket.socket, buffer: bytearray) -> FetchResponse:
    """Read one Fetch response into a reused buffer: another copy would cost as much as the broker's work."""
    view = memoryview(buffer)
    _receive_exactly(connection, view[:4])
    (size,) = struct.unpack_from(">i", buffer)
    _receive_exactly(connection, view[:size])
    # Response header 0 is the correlation id alone.
    return decode_message(FetchResponse, view[4:size], FETCH_VERSION)


def _receive_exactly(connection: socket.socket, view: memoryview) -> None:
    """Fill *view*; a TLS connection knows no flags and returns a record at a time."""
    flags = 0 if isinstance(connection, ssl.SSLSocket) else socket.MSG_WAITALL
    received = 0
    while received < len(view):
        count = connection.recv_into(view[received:], len(view) - received, flags)
        assert count, "the broker hung up"
        received += count


def records_size(part: PartitionData) -> int:
    """Return the number of bytes of batches in one partition's response."""
    assert part.records is None or isinstance(part.records, (bytes, memoryview))
    return len(part.records or b"")


def run_in_threads(works: list[Callable[[], None]]) -> None:
    """Run all functions at once, each in a thread; raise the first error."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as problem:
            errors.append(problem)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
