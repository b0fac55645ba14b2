"""The broker's side of a connection: parsed and refused requests, and the order of responses."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest

from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.compile_source import STEP_ELEMENTS
from kafkacompat.wire.compiler import encode_message
from kafkacompat.wire.connection import (
    MAX_SMALL_BYTES,
    EncodedResponse,
    IncomingRequest,
    RequestError,
    ServerConnection,
)
from kafkacompat.wire.headers import RequestHeader, request_header_version
from kafkacompat.wire.schema import Request, Response, Versions


@dataclass
class Served:
    request: type[Request]
    versions: Versions


SERVED = {
    12: Served(HeartbeatRequest, Versions(0, 4)),
    15: Served(DescribeGroupsRequest, Versions(0, 6)),
    18: Served(ApiVersionsRequest, Versions(0, 4)),
}


def make_frame(request: Request, version: int, correlation_id: int = 1, client_id: str | None = "me") -> memoryview:
    header = RequestHeader(
        request_api_key=request.API_KEY,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    known = version in request.VERSIONS
    body = encode_message(request, version) if known else b""
    header_version = request_header_version(type(request), version) if known else 2
    return memoryview(encode_message(header, header_version) + body)


def answer_request(
    connection: ServerConnection, request: IncomingRequest, response: Response | None, version: int
) -> None:
    for _ in connection.answer(request, response, version) or ():
        pass


def take_sent(connection: ServerConnection) -> bytes:
    return b"".join(bytes(part) for part in connection.take_parts())  # type: ignore[arg-type]


def test_a_request_is_parsed_with_the_header_its_version_takes() -> None:
    for version in range(5):
        request = HeartbeatRequest(group_id="g", generation_id=7, member_id="m")
        incoming = ServerConnection(SERVED).parse(make_frame(request, version, 42))
        assert (incoming.api_key, incoming.api_version, incoming.correlation_id) == (12, version, 42)
        assert incoming.client_id == "me"
        assert incoming.body == request


def test_a_missing_client_id_is_an_empty_one() -> None:
    assert ServerConnection(SERVED).parse(make_frame(HeartbeatRequest(), 0, client_id=None)).client_id == ""


def test_an_unknown_version_of_api_versions_comes_without_a_body() -> None:
    assert ServerConnection(SERVED).parse(make_frame(ApiVersionsRequest(), 99)).body is None


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_broker_that_serves_only_the_first_api_versions_reads_the_headers_of_later_ones(version: int) -> None:
    served = {18: Served(ApiVersionsRequest, Versions(0, 0))}
    incoming = ServerConnection(served).parse(make_frame(ApiVersionsRequest(), version, 42))
    assert (incoming.body, incoming.api_version, incoming.correlation_id) == (None, version, 42)


def test_a_large_request_and_its_answer_take_a_step_for_some_elements() -> None:
    connection = ServerConnection(SERVED)
    request = DescribeGroupsRequest(groups=[f"group-{number}" for number in range(MAX_SMALL_BYTES // 8)])
    incoming = connection.parse(make_frame(request, 5))
    assert incoming.body is None and incoming.reading is not None
    assert sum(1 for _ in incoming.reading) == len(request.groups) // STEP_ELEMENTS
    assert incoming.body == request
    response = DescribeGroupsResponse(groups=[DescribedGroup(group_id=group) for group in request.groups])
    steps = connection.answer(incoming, response, 5)
    assert steps is not None
    assert sum(1 for _ in steps) == len(request.groups) // STEP_ELEMENTS
    assert take_sent(connection)[9:] == encode_message(response, 5)


def test_a_large_request_that_cannot_be_read_is_refused_in_the_step_that_finds_it() -> None:
    request = DescribeGroupsRequest(groups=["group"] * (MAX_SMALL_BYTES // 6))
    data = make_frame(request, 5)
    reading = ServerConnection(SERVED).parse(data[:-10]).reading
    assert reading is not None
    next(reading)
    with pytest.raises(RequestError, match="ends at byte"):
        list(reading)


def test_trailing_bytes_are_ignored() -> None:
    padded = memoryview(bytes(make_frame(ApiVersionsRequest(), 0)) + b"xyz")
    assert ServerConnection(SERVED).parse(padded).body == ApiVersionsRequest()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes"),
        (b"\0", "1 bytes"),
        (b"\x01\xf4\0\0\0\0\0\1\xff\xff", "API key 500"),
        (b"\0\x0c\0\x63\0\0\0\1\xff\xff", "HeartbeatRequest v99"),
        (b"\0\x0c\xff\xff\0\0\0\1\xff\xff", "HeartbeatRequest v-1"),
        (b"\0\x0c\0\0\0\0\0\1\xff\xff\0\x05ab", "ends at byte"),
        (b"\0\x12\0\x63\0\0\0\1\xff\xff", "ends at byte"),
    ],
)
def test_an_unanswerable_request_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(RequestError, match=reason):
        ServerConnection(SERVED).parse(memoryview(data))


def test_answers_leave_in_the_order_of_the_requests() -> None:
    connection = ServerConnection(SERVED)
    first, second, third = (connection.parse(make_frame(HeartbeatRequest(), 0, number)) for number in (1, 2, 3))
    answer_request(connection, second, HeartbeatResponse(), 0)
    assert take_sent(connection) == b""
    answer_request(connection, first, None, 0)
    assert take_sent(connection) == b"\0\0\0\x06" + b"\0\0\0\2" + encode_message(HeartbeatResponse(), 0)
    assert connection.in_flight == 1
    answer_request(connection, third, HeartbeatResponse(), 0)
    assert take_sent(connection).startswith(b"\0\0\0\x06\0\0\0\3")
    assert connection.in_flight == 0


def test_an_answer_that_another_broker_has_encoded_leaves_as_it_is() -> None:
    connection = ServerConnection(SERVED)
    incoming = connection.parse(make_frame(HeartbeatRequest(), 4, 7))
    encoded = EncodedResponse(data=b"\0\0\0\7 whatever")
    answer_request(connection, incoming, encoded, 4)
    assert connection.waiting_bytes == 4 + len(encoded.data)
    assert take_sent(connection) == len(encoded.data).to_bytes(4, "big") + encoded.data


def test_an_answered_request_releases_its_body_and_counts_waiting_bytes() -> None:
    connection = ServerConnection(SERVED)
    first, second, third = (connection.parse(make_frame(HeartbeatRequest(), 0, number)) for number in (1, 2, 3))
    answer_request(connection, second, HeartbeatResponse(), 0)
    answer_request(connection, third, None, 0)
    assert second.body is third.body is None
    assert first.body is not None
    assert connection.waiting_bytes == len(encode_message(HeartbeatResponse(), 0)) + 8
    answer_request(connection, first, HeartbeatResponse(), 0)
    assert len(take_sent(connection)) == 2 * (len(encode_message(HeartbeatResponse(), 0)) + 8)
    assert connection.waiting_bytes == 0


def test_a_file_region_that_waits_takes_no_memory() -> None:
    @dataclass
    class Region:
        size_bytes: int

    connection = ServerConnection(SERVED)
    request = connection.parse(make_frame(HeartbeatRequest(), 0))
    partition = PartitionData(records=Region(1_000_000))
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    answer_request(connection, request, response, 4)
    assert 0 < connection.waiting_bytes < 1000
    assert any(isinstance(part, Region) for part in connection.take_parts())


def test_an_answer_that_cannot_be_encoded_changes_nothing() -> None:
    connection = ServerConnection(SERVED)
    request = connection.parse(make_frame(HeartbeatRequest(), 0))
    with pytest.raises(struct.error):
        answer_request(connection, request, HeartbeatResponse(error_code=1 << 20), 0)
    assert (connection.waiting_bytes, request.answered) == (0, False)
    assert request.body is not None


def test_a_flexible_answer_has_a_flexible_header_but_never_that_of_api_versions() -> None:
    connection = ServerConnection(SERVED)
    heartbeat = connection.parse(make_frame(HeartbeatRequest(), 4, 5))
    versions = connection.parse(make_frame(ApiVersionsRequest(), 3, 6))
    answer_request(connection, heartbeat, HeartbeatResponse(), 4)
    assert take_sent(connection)[4:9] == b"\0\0\0\x05\0"
    answer_request(connection, versions, ApiVersionsResponse(error_code=7), 3)
    assert take_sent(connection)[4:10] == b"\0\0\0\x06\0\x07"


def test_abandoning_gives_back_the_parts_that_never_left() -> None:
    connection = ServerConnection(SERVED)
    connection.parse(make_frame(HeartbeatRequest(), 0, 1))
    answered = connection.parse(make_frame(HeartbeatRequest(), 0, 2))
    answer_request(connection, answered, HeartbeatResponse(), 0)
    assert len(connection.abandon()) == 1
    assert connection.in_flight == 0
    assert connection.waiting_bytes == 0
