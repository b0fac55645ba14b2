"""The client's side of a connection: versions, correlation ids, and peers that break the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from kafkacompat.wire.apis import API_NAMES, find_api
from kafkacompat.wire.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.apis.produce import ProduceRequest
from kafkacompat.wire.client_connection import (
    ClientConnection,
    IncomingResponse,
    NoCommonVersionError,
    OutgoingRequest,
    ResponseError,
    VersionCap,
)
from kafkacompat.wire.compile_source import STEP_ELEMENTS
from kafkacompat.wire.compiler import Part, encode_message
from kafkacompat.wire.connection import MAX_SMALL_BYTES, IncomingRequest, ServerConnection
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.frames import FrameReader
from kafkacompat.wire.schema import Request, Response, Versions
from tests.wire.random_messages import Mode, make_message, seeded_random

API_VERSIONS = 18
UNSUPPORTED = int(ErrorCode.UNSUPPORTED_VERSION)
CASES = [(key, version) for key in API_NAMES if key != API_VERSIONS for version in find_api(key).request.VERSIONS]


@dataclass
class Served:
    request: type[Request]
    versions: Versions


def frames_of(parts: list[Part]) -> list[memoryview]:
    """The contents of the frames, as the other side finds them."""
    return FrameReader(1 << 30).feed(b"".join(map(bytes, parts)))  # type: ignore[arg-type]


class World:
    """A client, and a server with the given versions of each API."""

    def __init__(self, versions: dict[int, Versions], cap: VersionCap = lambda _: None) -> None:
        versions = {API_VERSIONS: Versions(0, 4), **versions}
        self.versions = versions
        self.served = {key: Served(find_api(key).request, known) for key, known in versions.items()}
        self.server = ServerConnection(self.served)
        self.client = ClientConnection("me", cap)

    def requests(self) -> list[IncomingRequest]:
        """Return the requests that arrive at the server."""
        received = [self.server.parse(frame) for frame in frames_of(self.client.take_parts())]
        for request in received:
            list(request.reading or ())
        return received

    def answer(self, request: IncomingRequest, response: Response, version: int | None = None) -> None:
        list(self.server.answer(request, response, request.api_version if version is None else version) or ())

    def responses(self) -> list[IncomingResponse | None]:
        """Return the responses that arrive at the client."""
        received = [self.client.receive(frame) for frame in frames_of(self.server.take_parts())]
        for response in received:
            list((response and response.reading) or ())
        return received

    def negotiate(self) -> list[int]:
        """Exchange the versions; return those of ApiVersions that were tried."""
        tried = []
        while not self.client.is_negotiated:
            (request,) = self.requests()
            tried.append(request.api_version)
            known = request.body is not None
            self.answer(request, self.list_versions(0 if known else UNSUPPORTED), None if known else 0)
            assert self.responses() == [None]
        return tried

    def list_versions(self, error_code: int = 0) -> ApiVersionsResponse:
        listed = [
            ApiVersion(api_key=key, min_version=known.first, max_version=known.last)
            for key, known in self.versions.items()
        ]
        return ApiVersionsResponse(error_code=error_code, api_keys=listed)

    def send(self, request: Request) -> OutgoingRequest:
        sent = self.client.send(request)
        list(sent.writing or ())
        return sent


def make_negotiated(versions: dict[int, Versions], cap: VersionCap = lambda _: None) -> World:
    world = World(versions, cap)
    world.negotiate()
    return world


def make_heartbeat_world() -> World:
    return make_negotiated({12: Versions(0, 4)})


# Both sides together


@pytest.mark.parametrize(("key", "version"), CASES, ids=[f"{API_NAMES[key]}-{version}" for key, version in CASES])
def test_every_request_and_response_arrives_as_it_was_sent(key: int, version: int) -> None:
    rng, api = seeded_random(), find_api(key)
    world = make_negotiated({key: Versions(version, version)})
    for mode in (Mode.DEFAULT, Mode.RANDOM):
        request: Any = make_message(api.request, version, rng, mode)
        response: Any = make_message(api.response, version, rng, mode)
        if isinstance(request, ProduceRequest):
            request.acks = 1
        sent = world.send(request)
        (received,) = world.requests()
        assert (received.api_key, received.api_version, received.body) == (key, version, request)
        assert received.correlation_id == sent.correlation_id
        world.answer(received, response)
        (answered,) = world.responses()
        assert answered is not None and answered.request is sent
        assert answered.body == response
    assert world.client.in_flight == 0


@pytest.mark.parametrize("version", range(5))
def test_versions_are_exchanged_in_every_version_of_api_versions(version: int) -> None:
    world = World({API_VERSIONS: Versions(0, version), 12: Versions(2, 3)})
    assert world.negotiate() == sorted({4, version}, reverse=True)
    assert world.client.find_version(HeartbeatRequest) == 3


def test_the_first_request_is_api_versions_with_the_client_id() -> None:
    world = World({})
    (request,) = world.requests()
    assert (request.client_id, request.api_version) == ("me", 4)
    assert isinstance(request.body, ApiVersionsRequest)
    assert request.body.client_software_name == "kafkacompat" and request.body.client_software_version


def test_responses_belong_to_their_requests_in_order() -> None:
    world = make_heartbeat_world()
    sent = [world.send(HeartbeatRequest(generation_id=number)) for number in range(3)]
    received = world.requests()
    assert [request.body.generation_id for request in received] == [0, 1, 2]  # type: ignore[union-attr]
    for request in received:
        world.answer(request, HeartbeatResponse(error_code=request.body.generation_id))  # type: ignore[union-attr]
    assert world.client.in_flight == 3
    answered = world.responses()
    assert [response.request for response in answered if response] == sent
    assert [response.body.error_code for response in answered if response] == [0, 1, 2]  # type: ignore[union-attr]


def test_records_stay_in_the_received_bytes() -> None:
    world = make_negotiated({1: Versions(4, 12)})
    world.send(FetchRequest())
    (request,) = world.requests()
    partition = PartitionData(partition_index=0, records=b"r" * 10_000)
    world.answer(request, FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])]))
    (frame,) = frames_of(world.server.take_parts())
    answered = world.client.receive(frame)
    assert answered is not None
    records = answered.body.responses[0].partitions[0].records  # type: ignore[union-attr]
    assert isinstance(records, memoryview) and records.obj is frame.obj
    assert records == b"r" * 10_000


def test_a_large_request_and_its_response_take_a_step_for_some_elements() -> None:
    world = make_negotiated({15: Versions(0, 5), 12: Versions(0, 4)})
    request = DescribeGroupsRequest(groups=[f"group-{number}" for number in range(MAX_SMALL_BYTES // 8)])
    large, small = world.client.send(request), world.client.send(HeartbeatRequest())
    # The small one is complete, but has to wait for its turn.
    assert large.writing is not None and small.writing is None
    assert world.client.take_parts() == []
    assert sum(1 for _ in large.writing) == len(request.groups) // STEP_ELEMENTS
    received, _ = world.requests()
    assert received.body == request
    response = DescribeGroupsResponse(groups=[DescribedGroup(group_id=group) for group in request.groups])
    world.answer(received, response)
    (frame,) = frames_of(world.server.take_parts())
    answered = world.client.receive(frame)
    assert answered is not None and answered.body is None and answered.reading is not None
    assert sum(1 for _ in answered.reading) == len(request.groups) // STEP_ELEMENTS
    assert answered.body == response


# Versions


@pytest.mark.parametrize(
    ("theirs", "cap", "version"),
    [
        (Versions(0, 4), None, 4),
        (Versions(0, 9), None, 4),
        (Versions(1, 2), None, 2),
        (Versions(0, 4), 3, 3),
        (Versions(0, 2), 3, 2),
        (Versions(0, 4), 0, 0),
    ],
)
def test_the_highest_version_of_both_sides_is_sent(theirs: Versions, cap: int | None, version: int) -> None:
    world = make_negotiated({12: theirs}, {12: cap}.get)
    assert world.send(HeartbeatRequest()).api_version == version
    assert world.requests()[0].api_version == version


@pytest.mark.parametrize(
    ("theirs", "cap"),
    [
        ({12: Versions(5, 9)}, None),
        ({12: Versions(3, 4)}, 2),
        ({12: Versions(0, 4)}, -1),
        ({12: Versions(3, 1)}, None),
        ({}, None),
    ],
)
def test_a_request_without_a_common_version_is_not_sent(theirs: dict[int, Versions], cap: int | None) -> None:
    world = make_negotiated({15: Versions(0, 5), **theirs}, {12: cap}.get)
    with pytest.raises(NoCommonVersionError, match=r"^HeartbeatRequest has the versions 0 to 4"):
        world.client.send(HeartbeatRequest())
    assert world.client.take_parts() == []
    # The connection is good for other requests.
    world.send(DescribeGroupsRequest())
    assert len(world.requests()) == 1


def test_a_request_that_cannot_be_encoded_changes_nothing() -> None:
    world = make_heartbeat_world()
    with pytest.raises(AttributeError):
        world.client.send(HeartbeatRequest(group_id=None))  # type: ignore[arg-type]
    assert world.client.take_parts() == []
    sent = world.send(HeartbeatRequest())
    (request,) = world.requests()
    world.answer(request, HeartbeatResponse())
    (answered,) = world.responses()
    assert answered is not None and answered.request is sent


def test_a_request_without_a_response_is_rejected() -> None:
    world = make_negotiated({0: Versions(0, 9)})
    with pytest.raises(ValueError, match="acks=0"):
        world.client.send(ProduceRequest(acks=0))


def test_an_old_broker_that_lists_nothing_with_its_error_is_asked_in_the_first_version() -> None:
    world = World({})
    (request,) = world.requests()
    world.answer(request, ApiVersionsResponse(error_code=UNSUPPORTED), 0)
    world.responses()
    assert [again.api_version for again in world.requests()] == [0]


def test_the_cap_holds_for_api_versions() -> None:
    world = World({}, {API_VERSIONS: 2}.get)
    assert world.negotiate() == [2]


# Peers that break the protocol


def respond_to_request(world: World, response: ApiVersionsResponse, version: int) -> None:
    (request,) = world.requests()
    world.answer(request, response, version)
    world.responses()


def test_a_failed_negotiation_ends_the_connection() -> None:
    with pytest.raises(ResponseError, match="the error 87"):
        respond_to_request(World({}), ApiVersionsResponse(error_code=87), 4)
    # It claims the version that it does not have.
    world = World({})
    respond_to_request(world, world.list_versions(UNSUPPORTED), 0)
    assert world.requests()[0].api_version == 3
    world = World({API_VERSIONS: Versions(9, 12)})
    with pytest.raises(ResponseError, match="the peer has none"):
        respond_to_request(world, world.list_versions(UNSUPPORTED), 0)
    world = World({}, {API_VERSIONS: 0}.get)
    with pytest.raises(ResponseError, match="the error 35"):
        respond_to_request(world, world.list_versions(UNSUPPORTED), 0)


def heartbeat_frame(correlation_id: int, body: bytes | None = None) -> memoryview:
    content = encode_message(HeartbeatResponse(), 4) if body is None else body
    return memoryview(correlation_id.to_bytes(4, "big") + b"\0" + content)


def test_a_frame_that_no_request_waits_for_ends_the_connection() -> None:
    world = make_heartbeat_world()
    with pytest.raises(ResponseError, match="no request is unanswered"):
        world.client.receive(heartbeat_frame(1))
    # A request that was not taken has not left.
    world = make_heartbeat_world()
    sent = world.send(HeartbeatRequest())
    with pytest.raises(ResponseError, match="no request is unanswered"):
        world.client.receive(heartbeat_frame(sent.correlation_id))


def test_another_correlation_id_ends_the_connection() -> None:
    world = make_heartbeat_world()
    first, second = world.send(HeartbeatRequest()), world.send(HeartbeatRequest())
    world.requests()
    with pytest.raises(ResponseError, match=f"id {second.correlation_id}, but .* has {first.correlation_id}$"):
        world.client.receive(heartbeat_frame(second.correlation_id))


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0"])
def test_a_frame_without_a_header_ends_the_connection(data: bytes) -> None:
    with pytest.raises(ResponseError, match="no whole header"):
        make_heartbeat_world().client.receive(memoryview(data))


@pytest.mark.parametrize("body", [b"", b"\0\0", b"\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff"])
def test_a_body_that_cannot_be_read_ends_the_connection(body: bytes) -> None:
    world = make_heartbeat_world()
    sent = world.send(HeartbeatRequest())
    world.requests()
    with pytest.raises(ResponseError, match=r"^HeartbeatResponse v4 cannot be read"):
        world.client.receive(heartbeat_frame(sent.correlation_id, body))


def test_a_large_response_that_cannot_be_read_fails_in_the_step_that_finds_it() -> None:
    world = make_negotiated({15: Versions(0, 5)})
    world.send(DescribeGroupsRequest())
    (request,) = world.requests()
    groups = [DescribedGroup(group_id="group") for _ in range(MAX_SMALL_BYTES // 6)]
    world.answer(request, DescribeGroupsResponse(groups=groups))
    (frame,) = frames_of(world.server.take_parts())
    answered = world.client.receive(frame[:-10])
    assert answered is not None and answered.reading is not None
    next(answered.reading)
    with pytest.raises(ResponseError, match="DescribeGroupsResponse v5 cannot be read"):
        list(answered.reading)


@pytest.mark.parametrize("key", API_NAMES)
def test_random_bytes_raise_nothing_but_response_errors(key: int) -> None:
    rng, api = seeded_random(), find_api(key)
    version = api.request.VERSIONS.last
    valid = encode_message(make_message(api.response, version, rng, Mode.SMALL), version)
    for _ in range(20):
        world = World({key: Versions(version, version)})
        if key != API_VERSIONS:
            world.negotiate()
            sent = world.send(api.request(**({"acks": 1} if key == 0 else {})))
            correlation_id = sent.correlation_id
        else:
            correlation_id = 0
        world.requests()
        data = bytearray(valid if rng.random() < 0.7 else rng.randbytes(rng.randint(0, 80)))
        for _ in range(rng.randint(1, 4) if data else 0):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
        try:
            answered = world.client.receive(memoryview(correlation_id.to_bytes(4, "big") + data))
            list((answered and answered.reading) or ())
        except ResponseError:
            continue
        assert world.client.in_flight == 0


def test_correlation_ids_stay_in_range() -> None:
    world = make_heartbeat_world()
    world.client._next_correlation_id = 0x7FFFFFFF
    assert [world.send(HeartbeatRequest()).correlation_id for _ in range(2)] == [0x7FFFFFFF, 0]
