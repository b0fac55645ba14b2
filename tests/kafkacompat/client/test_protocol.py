"""One connection outward, where messages are so large that they take several turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twisted.python.failure import Failure

from kafkacompat.client.errors import ConnectionLostError
from kafkacompat.client.protocol import BrokerProtocol
from kafkacompat.handlers import HANDLERS
from kafkacompat.wire.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.client_connection import ClientConnection
from kafkacompat.wire.connection import IncomingRequest, ServedApi, ServerConnection
from kafkacompat.wire.frames import FrameReader
from kafkacompat.wire.schema import Request, Response, Versions
from tests.fakes.busy_clock import BusyClock

MANY = 4000


@dataclass
class Served:
    request: type[Request]
    versions: Versions


class Transport:
    """Keeps what is sent, and whether bytes are wanted."""

    def __init__(self) -> None:
        self.sent = b""
        self.is_reading = True
        self.is_aborted = False

    def send_parts(self, parts: list[bytes]) -> None:
        self.sent += b"".join(parts)

    def pauseProducing(self) -> None:
        self.is_reading = False

    def resumeProducing(self) -> None:
        self.is_reading = True

    def abortConnection(self) -> None:
        self.is_aborted = True


class World:
    """A connection whose versions were exchanged, on a clock where everything takes time."""

    def __init__(self, served: Mapping[int, ServedApi] = HANDLERS) -> None:
        self.clock = BusyClock()
        self.ended: list[str] = []
        self.ready: list[bool] = []
        self.protocol = BrokerProtocol(
            self.clock,
            ClientConnection("me"),
            1 << 30,
            lambda: self.ready.append(self.protocol.is_ready),
            self.ended.append,
        )
        self.transport = Transport()
        self.server = ServerConnection(served)
        self._frames = FrameReader(1 << 30)
        assert not self.protocol.is_ready
        self.protocol.makeConnection(self.transport)
        self.tried: list[int] = []
        while not self.protocol.is_ready:
            (request,) = self.received()
            self.tried.append(request.api_version)
            self._list_versions(request, served)
        assert self.ready == [True]

    def _list_versions(self, request: IncomingRequest, served: Mapping[int, ServedApi]) -> None:
        is_known = request.body is not None
        versions = {key: api.versions for key, api in served.items()}
        listed = [ApiVersion(api_key=key, min_version=0, max_version=min(4, versions[key].last)) for key in versions]
        response = ApiVersionsResponse(error_code=0 if is_known else 35, api_keys=listed)
        list(self.server.answer(request, response, request.api_version if is_known else 0) or ())
        self.protocol.dataReceived(b"".join(self.server.take_parts()))  # type: ignore[arg-type]

    def received(self) -> list[IncomingRequest]:
        """The requests that have arrived at the broker since the last time."""
        data, self.transport.sent = self.transport.sent, b""
        requests = [self.server.parse(frame) for frame in self._frames.feed(data)]
        for request in requests:
            list(request.reading or ())
        return requests

    def answer(self, *answers: Any) -> None:
        """Let responses arrive in one piece: request, response, request, response, ..."""
        for request, response in zip(answers[::2], answers[1::2], strict=True):
            assert isinstance(response, Response)
            list(self.server.answer(request, response, request.api_version) or ())
        self.protocol.dataReceived(b"".join(self.server.take_parts()))  # type: ignore[arg-type]


def large_request() -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=[f"group-{number}" for number in range(MANY)])


def large_response() -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[DescribedGroup(group_id=f"group-{number}") for number in range(MANY)])


def test_a_large_request_is_written_in_turns_before_later_ones() -> None:
    world = World()
    world.protocol.send(large_request())
    world.protocol.send(HeartbeatRequest())
    assert world.received() == []
    assert world.clock.turns() > 2
    assert [request.api_key for request in world.received()] == [15, 12]


def test_a_large_response_is_read_in_turns_before_later_ones() -> None:
    world = World()
    got: list[Any] = []
    world.protocol.send(DescribeGroupsRequest()).addCallback(got.append)
    world.protocol.send(HeartbeatRequest()).addCallback(got.append)
    large, small = world.received()
    world.answer(large, large_response(), small, HeartbeatResponse())
    assert got == [] and not world.transport.is_reading
    assert world.clock.turns() > 2
    assert got == [large_response(), HeartbeatResponse()] and world.transport.is_reading


def test_a_connection_lost_while_a_response_is_read_fails_its_request() -> None:
    world = World()
    problems: list[Failure] = []
    world.protocol.send(DescribeGroupsRequest()).addErrback(problems.append)
    (request,) = world.received()
    world.answer(request, large_response())
    world.protocol.connectionLost(Failure(ConnectionError()))
    assert [type(failure.value) for failure in problems] == [ConnectionLostError]
    world.clock.turns()
    assert len(problems) == 1 and world.ended == ["the broker closed the connection"]
    assert not world.transport.is_reading


def test_a_connection_lost_while_a_request_is_written_sends_nothing() -> None:
    world = World()
    problems: list[Failure] = []
    world.protocol.send(large_request()).addErrback(problems.append)
    world.protocol.connectionLost(Failure(ConnectionError()))
    world.clock.turns()
    assert world.received() == [] and len(problems) == 1


def test_a_large_response_that_cannot_be_read_ends_the_connection() -> None:
    world = World()
    problems: list[Any] = []
    world.protocol.send(DescribeGroupsRequest()).addErrback(problems.append)
    (request,) = world.received()
    list(world.server.answer(request, large_response(), request.api_version) or ())
    data = bytearray(b"".join(world.server.take_parts()))  # type: ignore[arg-type]
    data[-60:] = b"\xff" * 60
    world.protocol.dataReceived(bytes(data))
    assert problems == []
    world.clock.turns()
    assert "DescribeGroupsResponse v4 cannot be read" in str(problems[0].value)
    assert world.transport.is_aborted and len(world.ended) == 1


def test_a_large_request_with_wrong_values_ends_the_connection() -> None:
    world = World()
    problems: list[Any] = []
    wrong: Any = large_request()
    wrong.groups[-1] = None
    world.protocol.send(wrong).addErrback(problems.append)
    assert problems == []
    world.clock.turns()
    assert "a message cannot be coded" in str(problems[0].value) and world.transport.is_aborted


def test_nothing_is_taken_after_the_end() -> None:
    world = World()
    problems: list[Any] = []
    world.protocol.send(HeartbeatRequest()).addErrback(problems.append)
    (request,) = world.received()
    world.protocol.close("it is over")
    world.answer(request, HeartbeatResponse())
    world.protocol.close("again")
    world.protocol.connectionLost(Failure(ConnectionError()))
    assert [str(failure.value) for failure in problems] == ["it is over"]
    assert world.ended == ["it is over"] and not world.protocol.is_ready


def test_frames_after_one_that_cannot_be_read_are_dropped() -> None:
    world = World()
    outcomes: list[Any] = []
    for _ in range(2):
        world.protocol.send(HeartbeatRequest()).addBoth(outcomes.append)
    first, second = world.received()
    list(world.server.answer(first, HeartbeatResponse(), first.api_version) or ())
    data = b"".join(world.server.take_parts())  # type: ignore[arg-type]
    world.server.answer(second, HeartbeatResponse(), second.api_version)
    cut = (len(data) - 4 - 3).to_bytes(4, "big") + data[4:-3]
    world.protocol.dataReceived(cut + b"".join(world.server.take_parts()))  # type: ignore[arg-type]
    assert len(world.ended) == 1 and "HeartbeatResponse v4 cannot be read" in world.ended[0]
    assert [type(failure.value) for failure in outcomes] == [ConnectionLostError] * 2


def test_a_broker_of_older_versions_is_asked_again() -> None:
    world = World({18: Served(ApiVersionsRequest, Versions(0, 2))})
    assert world.ready == [True] and world.tried == [4, 2]


def test_a_connection_that_is_made_too_late_is_closed() -> None:
    protocol = BrokerProtocol(BusyClock(), ClientConnection("me"), 100, lambda: None, lambda _: None)
    protocol.close("it took too long")
    transport = Transport()
    protocol.makeConnection(transport)
    assert transport.is_aborted and transport.sent == b""
