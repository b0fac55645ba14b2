"""A conversation is understood from its bytes: versions, magic bytes, errors, connections hung up."""

from __future__ import annotations

import struct

import pytest

from compat_tests.matrix.recording import FETCH, PRODUCE, Conversation, Recording, newest_magic, spoken_name
from kafkacompat.wire import compiler
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from kafkacompat.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkacompat.wire.headers import (
    ResponseHeader,
    encode_request,
    response_header_version,
)
from kafkacompat.wire.schema import Request, Response


def make_frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def request_bytes(request: Request, version: int, correlation_id: int = 1) -> bytes:
    return make_frame(encode_request(request, version, correlation_id, "client"))


def answer_bytes(answer: Response, version: int, correlation_id: int = 1) -> bytes:
    header = ResponseHeader(correlation_id=correlation_id)
    head = compiler.encode_message(header, response_header_version(type(answer), version))
    return make_frame(head + compiler.encode_message(answer, version))


def message_set(magic: int) -> bytes:
    """Return bytes that are a message set or a batch as far as the magic byte tells."""
    return bytes(16) + bytes([magic]) + bytes(50)


def make_produce_request(magic: int) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=message_set(magic))]
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])


def make_fetch_response(magic: int | None, error_code: int = 0) -> FetchResponse:
    records = message_set(magic) if magic is not None else b""
    partition = PartitionData(partition_index=0, error_code=error_code, records=records)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])


def record_conversation(*directions: tuple[str, bytes]) -> Recording:
    """Return what a conversation recorded; ``>`` is what the client says, ``<`` the broker."""
    recording = Recording()
    conversation = Conversation(recording)
    for direction, data in directions:
        {">": conversation.sent, "<": conversation.answered}[direction](data)
    return recording


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (2, 1), (3, 2), (7, 2), (9, 2)])
def test_produce_shows_its_magic(version: int, magic: int) -> None:
    recording = record_conversation((">", request_bytes(make_produce_request(magic), version)))
    assert recording.versions == {PRODUCE: {version}}
    assert recording.magics == {PRODUCE: {magic}}
    assert not recording.formats_too_new
    assert not recording.notes


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (2, 1), (4, 2), (11, 2), (12, 2)])
def test_fetch_shows_the_magic_of_its_answer(version: int, magic: int) -> None:
    request = request_bytes(FetchRequest(), version)
    recording = record_conversation((">", request), ("<", answer_bytes(make_fetch_response(magic), version)))
    assert recording.magics == {FETCH: {magic}}
    assert recording.summary() == f"Fetch v{version}, magic {magic}"
    assert not recording.formats_too_new


def test_a_format_that_the_version_does_not_know_is_found() -> None:
    recording = record_conversation(
        (">", request_bytes(FetchRequest(), 2)), ("<", answer_bytes(make_fetch_response(2), 2))
    )
    assert recording.formats_too_new == {"Fetch v2 carried magic 2"}


def test_bytes_may_come_in_any_pieces() -> None:
    data = request_bytes(make_produce_request(1), 2)
    recording = record_conversation(*((">", data[at : at + 1]) for at in range(len(data))))
    assert recording.summary() == "Produce v2, magic 1"


def test_an_empty_fetch_shows_no_magic() -> None:
    recording = record_conversation(
        (">", request_bytes(FetchRequest(), 4)), ("<", answer_bytes(make_fetch_response(None), 4))
    )
    assert recording.summary() == "Fetch v4"


def test_errors_are_noted_once() -> None:
    answer = TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse(index=0, error_code=87)])
    both = (
        (">", request_bytes(make_produce_request(2), 3, 7)),
        ("<", answer_bytes(ProduceResponse(responses=[answer]), 3, 7)),
    )
    recording = record_conversation(*both, *both)
    assert recording.notes == ["Produce v3: INVALID_RECORD"]


def test_a_request_left_without_an_answer_is_noted() -> None:
    recording = Recording()
    conversation = Conversation(recording)
    conversation.sent(request_bytes(make_produce_request(0), 0))
    conversation.hung_up()
    assert recording.notes == ["Produce v0: connection closed"]


def test_an_answered_request_is_not_noted() -> None:
    recording = Recording()
    conversation = Conversation(recording)
    conversation.sent(request_bytes(FetchRequest(), 4))
    conversation.answered(answer_bytes(make_fetch_response(2), 4))
    conversation.hung_up()
    assert not recording.notes


def test_an_api_versions_request_that_is_too_new_is_answered_in_version_0() -> None:
    request = bytearray(request_bytes(ApiVersionsRequest(), 4))
    request[6:8] = struct.pack(">h", 9)
    recording = record_conversation((">", bytes(request)), ("<", answer_bytes(ApiVersionsResponse(error_code=35), 0)))
    assert recording.notes == ["ApiVersions v9: UNSUPPORTED_VERSION"]


def test_an_unreadable_frame_is_noted_and_recording_continues() -> None:
    cut_off = make_frame(struct.pack(">hhi", PRODUCE, 3, 1) + b"\xff")
    recording = record_conversation((">", cut_off), (">", request_bytes(make_produce_request(2), 3)))
    assert recording.notes[0].startswith("unreadable: ")
    assert recording.magics == {PRODUCE: {2}}


def test_recordings_add_up() -> None:
    whole = Recording()
    whole.add(record_conversation((">", request_bytes(make_produce_request(0), 0))))
    whole.add(record_conversation((">", request_bytes(make_produce_request(2), 7))))
    assert whole.summary() == "Produce v0/v7, magic 0/2"


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (18, 2)])
def test_newest_magic(version: int, magic: int) -> None:
    assert newest_magic(version) == magic


def test_a_produced_format_is_not_counted_as_the_brokers() -> None:
    recording = record_conversation((">", request_bytes(make_produce_request(1), 1)))
    assert recording.summary() == "Produce v1, magic 1"
    assert not recording.formats_too_new


def test_names_are_written_as_kafka_writes_them() -> None:
    assert spoken_name(8) == "OffsetCommit"
    assert spoken_name(1000) == "API 1000"
