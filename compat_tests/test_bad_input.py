"""Bytes that no client should send: the one connection gets Kafka's error or is closed, and all others continue."""

from __future__ import annotations

import contextlib
import gzip
import random
import socket
import struct
from collections.abc import Iterator

import lz4.frame
import pytest
import zstandard

from compat_tests import batches
from compat_tests.brokers import Broker
from compat_tests.raw_client import ClosedError, RawClient, produce_request
from kafkacompat.handlers import HANDLERS
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import read_records

PRODUCE_VERSION = 9


def request_header(api_key: int, version: int, *, flexible: bool = False) -> bytes:
    return struct.pack(">hhih", api_key, version, 7, -1) + (b"\x00" if flexible else b"")


def make_frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


CLOSING = {
    "negative size": struct.pack(">i", -1),
    "size over socket.request.max.bytes": struct.pack(">i", 104_857_601),
    "the largest size": struct.pack(">i", 0x7FFFFFFF),
    "empty frame": make_frame(b""),
    "one byte": make_frame(b"\x00"),
    "half a header": make_frame(request_header(18, 0)[:6]),
    "client id longer than the frame": make_frame(struct.pack(">hhih", 18, 0, 7, 500) + b"short"),
    "unknown API": make_frame(request_header(500, 0)),
    "negative API": make_frame(request_header(-1, 0)),
    "API removed from Kafka": make_frame(request_header(4, 7, flexible=True)),
    "API of controllers": make_frame(request_header(52, 0, flexible=True)),
    "version too new": make_frame(request_header(1, 99, flexible=True)),
    "version too old": make_frame(request_header(1, 3)),
    "Produce 2": make_frame(request_header(0, 2)),
    "Fetch without a body": make_frame(request_header(1, 12, flexible=True)),
    "a count that the frame cannot hold": make_frame(request_header(3, 1) + struct.pack(">i", 2**30)),
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS hello": bytes.fromhex("1603010200010001fc0303") + bytes(200),
}


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker.port) as connection:
        yield connection


@pytest.fixture
def topic(client: RawClient, name: str) -> str:
    """Create a topic of one partition and return its name once it takes writes."""
    create_topic(client, name)
    return name


def create_topic(client: RawClient, name: str) -> None:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=10_000
    )
    assert client.call(request, CreateTopicsResponse, 5).topics[0].error_code == 0
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    while client.call(wanted, MetadataResponse, 8).topics[0].error_code != 0:
        pass


def produce(client: RawClient, topic: str, batch: bytes, version: int = PRODUCE_VERSION) -> int:
    """Produce one batch and return its error code."""
    answer = client.call(produce_request(topic, {0: batch}), ProduceResponse, version)
    return answer.responses[0].partition_responses[0].error_code


def stored_values(client: RawClient, topic: str) -> list[bytes | None]:
    """Fetch partition 0 from its beginning."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )
    partition = client.call(request, FetchResponse, 11).responses[0].partitions[0]
    assert partition.error_code == 0
    assert isinstance(partition.records, (bytes, memoryview))
    return [record.value for batch in split_batches(memoryview(partition.records)) for record in read_records(batch)]


def split_batches(data: memoryview) -> Iterator[memoryview]:
    position = 0
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        yield data[position : position + 12 + length]
        position += 12 + length


def drain_client(client: RawClient) -> None:
    """Close the sending side, and read all responses until the broker closes the connection."""
    with contextlib.suppress(ConnectionError, OSError):
        client.socket.shutdown(socket.SHUT_WR)
        while client.socket.recv(65536):
            pass


def assert_serves(broker: Broker) -> None:
    with RawClient(broker.port) as other:
        assert other.call(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code == 0


@pytest.mark.parametrize("data", CLOSING.values(), ids=CLOSING.keys())
def test_connection_is_closed_and_others_go_on(broker: Broker, client: RawClient, data: bytes) -> None:
    with RawClient(broker.port) as bystander:
        client.socket.sendall(data)
        assert client.is_closed()
        assert bystander.call(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code == 0


@pytest.mark.parametrize("case", ["negative size", "unknown API", "Fetch without a body"])
def test_one_log_line_names_the_client_and_the_reason(
    broker: Broker, broker_kind: str, client: RawClient, case: str
) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("this is our log")
    me = f"127.0.0.1:{client.socket.getsockname()[1]}"
    client.socket.sendall(CLOSING[case])
    assert client.is_closed()
    assert len([line for line in broker.stderr().splitlines() if me in line]) == 1


def test_string_that_is_not_utf_8_is_no_topic(broker: Broker, client: RawClient) -> None:
    """Kafka reads it with replacement characters and finds no such topic; closing the connection is as good."""
    client.socket.sendall(make_frame(request_header(3, 1) + struct.pack(">ih", 1, 2) + b"\xff\xfe"))
    with contextlib.suppress(ClosedError):
        assert client.receive_frame()
    assert_serves(broker)


@pytest.mark.parametrize("version", [99, -1])
def test_unknown_version_of_api_versions_is_answered_in_version_0(client: RawClient, version: int) -> None:
    client.send_frame(struct.pack(">hhihB", 18, version, 1, -1, 0))
    assert client.receive_frame() == bytes.fromhex("00000001 0023 00000001 0012 0000 0004")
    assert client.call(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code == 0


def test_api_versions_wants_a_proper_software_name(client: RawClient) -> None:
    request = ApiVersionsRequest(client_software_name="no spaces", client_software_version="1")
    assert client.call(request, ApiVersionsResponse, 3).error_code == ErrorCode.INVALID_REQUEST


def test_bytes_after_the_body_are_ignored(client: RawClient) -> None:
    client.send_frame(client.encode(ApiVersionsRequest(), 0) + b"\x01\x02\x03")
    assert client.receive(ApiVersionsResponse, 0).error_code == 0


@pytest.mark.parametrize("api_key", sorted(HANDLERS))
def test_garbage_bodies_harm_no_other_client(broker: Broker, api_key: int) -> None:
    """Random bodies at every version: an answer or a closed connection, and the next connection is served."""
    rng = random.Random(api_key)
    served = HANDLERS[api_key]
    for version in served.versions:
        header = request_header(api_key, version, flexible=version in served.request.FLEXIBLE)
        with RawClient(broker.port) as attacker:
            attacker.send_frame(header + rng.randbytes(rng.randrange(1, 200)))
            drain_client(attacker)
    assert_serves(broker)


BATCH = batches.build([b"one", b"two", b"three"])

REFUSED = {
    "bad CRC": (BATCH[:-1] + b"\xff", {ErrorCode.CORRUPT_MESSAGE}),
    "no batch": (b"", {ErrorCode.INVALID_RECORD}),
    "truncated batch": (BATCH[:-5], {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}),
    "two batches": (BATCH + BATCH, {ErrorCode.INVALID_RECORD}),
    "count over last offset delta": (batches.patch_header(BATCH, 57, "i", 4), {ErrorCode.INVALID_RECORD}),
    "no records": (batches.patch_header(BATCH, 57, "i", 0), {ErrorCode.INVALID_RECORD}),
    "negative count": (batches.patch_header(BATCH, 57, "i", -3), {ErrorCode.INVALID_RECORD}),
    "last offset delta off": (batches.patch_header(BATCH, 23, "i", 9), {ErrorCode.INVALID_RECORD}),
    "count and delta agree, contents do not": (
        batches.patch_header(batches.patch_header(BATCH, 57, "i", 9), 23, "i", 8),
        {ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.CORRUPT_MESSAGE},
    ),
    "record bytes are garbage": (
        batches.with_records(BATCH, b"\xff" * 40),
        {ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.CORRUPT_MESSAGE},
    ),
    "key length lies": (batches.patch_header(BATCH, 65, "b", 8), {ErrorCode.INVALID_RECORD}),
    "value length lies": (batches.patch_header(BATCH, 69, "b", 4), {ErrorCode.INVALID_RECORD}),
    "header count lies": (batches.patch_header(BATCH, 73, "b", 2), {ErrorCode.INVALID_RECORD}),
    "control bit": (batches.patch_header(BATCH, 21, "h", 0x20), {ErrorCode.INVALID_RECORD}),
    "producer id without sequence": (batches.patch_header(BATCH, 43, "q", 5), {ErrorCode.INVALID_RECORD}),
    "timestamp in the far future": (
        batches.build([b"x"], timestamp=9_000_000_000_000),
        {ErrorCode.INVALID_TIMESTAMP},
    ),
    "magic 1": (BATCH[:16] + b"\x01" + BATCH[17:], {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}),
    "magic 3": (BATCH[:16] + b"\x03" + BATCH[17:], {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}),
    "size too small": (batches.patch_header(BATCH, 8, "i", 3), {ErrorCode.CORRUPT_MESSAGE}),
    "negative size": (batches.patch_header(BATCH, 8, "i", -1), {ErrorCode.CORRUPT_MESSAGE}),
    "over max.message.bytes": (batches.build([b"x" * 1_100_000]), {ErrorCode.MESSAGE_TOO_LARGE}),
    # Kafka returns -1 here, which explains nothing to a producer; 2 and 87 name the problem.
    "unknown codec": (
        batches.patch_header(BATCH, 21, "h", 5),
        {ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD},
    ),
    "does not decompress": (
        batches.patch_header(BATCH, 21, "h", batches.GZIP),
        {ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD},
    ),
}


@pytest.mark.parametrize(("batch", "errors"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_batch_is_refused_and_good_ones_are_kept(
    client: RawClient, topic: str, batch: bytes, errors: set[ErrorCode]
) -> None:
    assert produce(client, topic, BATCH) == 0
    assert produce(client, topic, batch) in errors
    assert produce(client, topic, BATCH) == 0
    assert stored_values(client, topic) == [b"one", b"two", b"three"] * 2


def test_zstd_needs_produce_7(client: RawClient, topic: str) -> None:
    batch = batches.build([b"x" * 100], codec=batches.ZSTD)
    assert produce(client, topic, batch, version=6) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(client, topic, batch, version=7) == 0


def test_unknown_acknowledgement_is_refused(client: RawClient, topic: str) -> None:
    answer = client.call(produce_request(topic, {0: BATCH}, acks=7), ProduceResponse, PRODUCE_VERSION)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_error_without_acknowledgement_closes_the_connection(client: RawClient, topic: str) -> None:
    client.send(produce_request(topic, {0: REFUSED["bad CRC"][0]}, acks=0), PRODUCE_VERSION)
    assert client.is_closed()


def make_bomb(codec: int, size_bytes: int) -> bytes:
    """Return a small batch whose contents unpack to *size_bytes* zeros."""
    compress = {
        batches.GZIP: lambda data: gzip.compress(data, 9),
        batches.LZ4: lz4.frame.compress,
        batches.ZSTD: zstandard.compress,
    }
    template = batches.patch_header(BATCH, 21, "h", codec)
    return batches.with_records(template, compress[codec](bytes(size_bytes)))


@pytest.mark.parametrize("codec", [batches.GZIP, batches.LZ4, batches.ZSTD])
def test_decompression_bomb_is_refused_in_bounded_memory(
    broker: Broker, broker_kind: str, client: RawClient, topic: str, codec: int
) -> None:
    """Zeros are no chain of records, but a reader that unpacks all before it looks would hold them all."""
    packed = make_bomb(codec, 240_000_000)
    before = broker.resident_bytes()
    assert produce(client, topic, packed) != 0
    assert produce(client, topic, BATCH) == 0
    if broker_kind == "kafkacompat":
        assert broker.resident_bytes() - before < 150_000_000


def test_client_that_vanishes_in_a_frame_is_forgotten(broker: Broker, broker_kind: str) -> None:
    if broker_kind == "kafka":
        pytest.skip("Kafka reserves what a frame claims, and a JVM with 1 GB runs out of memory")
    for _ in range(100):
        with RawClient(broker.port) as vanishing:
            vanishing.socket.sendall(struct.pack(">i", 50_000_000) + b"x" * 1000)
    assert_serves(broker)


def test_a_closed_connection_says_nothing_more(client: RawClient) -> None:
    client.socket.sendall(CLOSING["unknown API"])
    with pytest.raises(ClosedError):
        client.receive_frame()
