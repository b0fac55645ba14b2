"""Headers, and which version of them goes with which body."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis import find_api
from kafkacompat.wire.apis.controlled_shutdown import ControlledShutdownRequest
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest
from kafkacompat.wire.compiler import decode_message, encode_message
from kafkacompat.wire.headers import (
    RequestHeader,
    ResponseHeader,
    encode_request,
    request_header_version,
    response_header_version,
)
from kafkacompat.wire.primitives import MalformedError

HEADER = RequestHeader(request_api_key=3, request_api_version=9, correlation_id=7, client_id="id")


@pytest.mark.parametrize(("version", "end"), [(1, ""), (2, "00")])
def test_the_client_id_keeps_its_two_byte_length(version: int, end: str) -> None:
    assert encode_message(HEADER, version).hex() == "0003" + "0009" + "00000007" + "00026964" + end
    assert decode_message(RequestHeader, encode_message(HEADER, version), version) == HEADER


@pytest.mark.parametrize(("version", "header"), [
    (0, "0007" + "0000" + "00000005"),
    (1, "0007" + "0001" + "00000005" + "0002" + "6964"),
    (3, "0007" + "0003" + "00000005" + "0002" + "6964" + "00"),
])  # fmt: skip
def test_a_request_has_the_header_of_its_version(version: int, header: str) -> None:
    request = ControlledShutdownRequest(broker_id=1)
    assert encode_request(request, version, 5, "id").hex() == header + encode_message(request, version).hex()


def test_a_request_may_be_sent_without_a_client_id() -> None:
    assert encode_request(HeartbeatRequest(), 0, 5, None)[:10].hex() == "000c" + "0000" + "00000005" + "ffff"


def test_a_request_header_may_lack_a_client_id() -> None:
    assert decode_message(RequestHeader, bytes.fromhex("0003000900000007ffff00"), 2).client_id is None


@pytest.mark.parametrize("version", [1, 2])
def test_a_cut_header_is_refused(version: int) -> None:
    data = encode_message(HEADER, version)
    for end in range(len(data)):
        with pytest.raises(MalformedError):
            decode_message(RequestHeader, data[:end], version)


@pytest.mark.parametrize(("version", "data"), [(0, "00000007"), (1, "0000000700")])
def test_the_response_header_is_the_correlation_id(version: int, data: str) -> None:
    assert encode_message(ResponseHeader(correlation_id=7), version).hex() == data


@pytest.mark.parametrize(("key", "version", "request_header", "response_header"), [
    (0, 8, 1, 0), (0, 9, 2, 1), (3, 8, 1, 0), (3, 9, 2, 1), (12, 3, 1, 0), (12, 4, 2, 1), (60, 0, 2, 1),
    (7, 0, 0, 0), (7, 1, 1, 0), (18, 2, 1, 0), (18, 3, 2, 0), (18, 4, 2, 0), (18, 99, 2, 0),
])  # fmt: skip
def test_flexible_bodies_have_flexible_headers_except_the_answer_of_api_versions(
    key: int, version: int, request_header: int, response_header: int
) -> None:
    request, response = find_api(key)
    assert request_header_version(request, version) == request_header
    assert response_header_version(request, version) == response_header
    assert response_header_version(response, version) == response_header
