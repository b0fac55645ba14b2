"""Connections of a listener with SASL: what they let through before, in the middle of and after authentication."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.handlers import HANDLERS
from kafkacompat.security.principals import ANONYMOUS, Principal
from kafkacompat.security.sasl.exchange import Offer, SaslExchange
from kafkacompat.security.sasl.plain import PlainServer, PlainUsers
from kafkacompat.server.connection import KafkaConnection, ListenerServices
from kafkacompat.server.frame_budget import FrameBudget
from kafkacompat.server.sasl_gate import AUTHENTICATION_TIMEOUT_S, SaslGate
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacompat.wire.compiler import decode_message
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.frames import SIZE
from kafkacompat.wire.schema import Request
from tests.kafkacompat.server.listening import decode_response, encode_request
from tests.kafkacompat.server.world import Transport

DELAY_S = 0.1
MAX_RECEIVE_BYTES = 1000
MAX_FRAME_BYTES = 1_000_000
USERS = PlainUsers({"user_alice": "alice-secret"})
ALICE, WRONG = b"\0alice\0alice-secret", b"\0alice\0wrong"


class Dispatcher:
    """Answers ApiVersions and Heartbeat; ``principals`` are those of the Heartbeats."""

    handlers = HANDLERS

    def __init__(self) -> None:
        self.principals: list[Principal] = []

    def answer_versions(self, incoming: Any, context: Any) -> Any:
        assert incoming.api_key == 18 and context.principal == ANONYMOUS
        return ApiVersionsResponse(error_code=0 if incoming.body else ErrorCode.UNSUPPORTED_VERSION)

    def dispatch(self, incoming: Any, context: Any) -> Any:
        self.principals.append(context.principal)
        return HeartbeatResponse()


class World:
    def __init__(self, max_session_ms: int = 0, delay_ms: int = 0) -> None:
        self.clock = Clock()
        self.dispatcher = Dispatcher()
        self.complaints: list[str] = []
        offer = Offer({"PLAIN": lambda: PlainServer(USERS)}, {"PLAIN": max_session_ms})
        self.budget = FrameBudget(1_000_000, lambda: 0)
        shared = ListenerServices(
            "SASL",
            self.dispatcher,  # type: ignore[arg-type]
            self.budget,
            MAX_FRAME_BYTES,
            self.clock,
            set(),
            lambda host, text: self.complaints.append(text),
            lambda: SaslGate(SaslExchange(offer, self._now_ms, self._now_ms), MAX_RECEIVE_BYTES, DELAY_S),
        )
        self.connection = KafkaConnection(shared, lambda *_: Deferred(), delay_ms)
        self.transport = Transport()
        self.connection.makeConnection(self.transport)

    def _now_ms(self) -> int:
        return int(self.clock.seconds() * 1000)

    def send(self, request: Request, version: int) -> None:
        frame = encode_request(request, version)
        self.send_bare(frame)

    def send_bare(self, frame: bytes) -> None:
        self.connection.dataReceived(SIZE.pack(len(frame)) + frame)

    def answers(self) -> list[bytes]:
        """Take the frames sent so far."""
        data, self.transport.sent = self.transport.sent, b""
        frames = []
        while data:
            size = SIZE.unpack_from(data)[0]
            frames.append(data[4 : 4 + size])
            data = data[4 + size :]
        return frames

    def answer(self) -> bytes:
        (frame,) = self.answers()
        return frame

    def log_in(self, token: bytes = ALICE) -> None:
        self.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert decode_response(self.answer(), SaslHandshakeResponse, 1).error_code == 0
        self.send(SaslAuthenticateRequest(auth_bytes=token), 2)

    @property
    def is_served(self) -> bool:
        self.send(HeartbeatRequest(), 0)
        return len(self.answers()) == 1


def test_a_client_is_served_as_its_user() -> None:
    world = World()
    world.send(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    assert decode_message(ApiVersionsResponse, world.answer()[4:], 3).error_code == 0
    world.log_in()
    assert decode_response(world.answer(), SaslAuthenticateResponse, 2).error_code == 0
    assert world.is_served
    assert world.dispatcher.principals == [Principal("User", "alice")]
    assert world.clock.getDelayedCalls() == [] and world.complaints == []


def test_messages_as_bare_frames() -> None:
    world = World()
    world.send(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    assert decode_response(world.answer(), SaslHandshakeResponse, 0).mechanisms == ["PLAIN"]
    world.send_bare(ALICE)
    assert world.answer() == b""
    assert world.is_served


def test_versions_in_an_unknown_version_may_be_followed_by_others() -> None:
    world = World()
    world.send_bare(b"\0\x12\0\x63\0\0\0\1\0\0\0")
    assert decode_message(ApiVersionsResponse, world.answer()[4:], 0).error_code == ErrorCode.UNSUPPORTED_VERSION
    world.send(ApiVersionsRequest(), 0)
    world.answer()
    world.log_in()
    world.answer()
    assert world.is_served


@pytest.mark.parametrize(
    "frame",
    [
        encode_request(HeartbeatRequest(), 0),
        encode_request(SaslAuthenticateRequest(auth_bytes=ALICE), 2),
        b"\x60\x82\x02\x5d\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02",  # GSSAPI of a client of 0.9
        b"",
        b"\0",
        b"\0\x11",
        b"\0\x11\0\1\0\0\0\1\0",
        b"\0\x11\0\x7f\0\0\0\1\0\0",
        ALICE,
    ],
)
def test_anything_else_before_authentication_closes_with_one_line(frame: bytes) -> None:
    world = World()
    world.send_bare(frame)
    assert world.transport.aborted and world.answers() == []
    assert len(world.complaints) == 1 and "Traceback" not in world.complaints[0]
    assert world.dispatcher.principals == []


def test_a_request_between_handshake_and_authentication() -> None:
    world = World()
    world.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    world.answer()
    world.send(HeartbeatRequest(), 0)
    assert world.transport.aborted and world.answers() == []
    assert world.dispatcher.principals == []


def test_a_wrong_password_is_answered_after_the_delay_and_then_nothing_is_read() -> None:
    world = World()
    world.log_in(WRONG)
    world.send(HeartbeatRequest(), 0)
    world.send(SaslAuthenticateRequest(auth_bytes=ALICE), 2)
    world.clock.advance(DELAY_S - 0.01)
    assert world.answers() == [] and not world.transport.reading
    world.clock.advance(0.01)
    response = decode_response(world.answer(), SaslAuthenticateResponse, 2)
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == "Authentication failed: Invalid username or password"
    assert world.transport.closing
    assert world.dispatcher.principals == []
    assert len(world.complaints) == 1
    assert "wrong" not in world.complaints[0] and "alice" not in world.complaints[0]
    world.clock.advance(AUTHENTICATION_TIMEOUT_S)
    assert len(world.complaints) <= 2


def test_a_wrong_password_in_a_bare_frame_closes_after_the_delay() -> None:
    world = World()
    world.send(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    world.answer()
    world.send_bare(WRONG)
    assert not world.transport.closing
    world.clock.advance(DELAY_S)
    assert world.answers() == [] and world.transport.closing


def test_an_unknown_mechanism() -> None:
    world = World()
    world.send(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert world.answers() == []
    world.clock.advance(DELAY_S)
    response = decode_response(world.answer(), SaslHandshakeResponse, 1)
    assert (response.error_code, response.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN"])
    assert world.transport.closing


def test_frames_are_small_before_authentication() -> None:
    """CVE-2022-34917: the claim of a size makes the broker allocate nothing, and a large one closes."""
    world = World()
    world.connection.dataReceived(SIZE.pack(MAX_RECEIVE_BYTES + 1))
    assert world.transport.aborted and world.budget.held_bytes <= 4
    world = World()
    world.log_in()
    world.answer()
    world.connection.dataReceived(SIZE.pack(MAX_FRAME_BYTES) + b"x")
    assert not world.transport.aborted


def test_a_client_that_stays_silent() -> None:
    world = World()
    world.send(ApiVersionsRequest(), 0)
    world.clock.advance(AUTHENTICATION_TIMEOUT_S - 1)
    assert not world.transport.aborted
    world.clock.advance(1)
    assert world.transport.aborted
    assert "has not authenticated itself within 30 s" in world.complaints[0]


def test_a_client_whose_connection_had_to_wait_has_the_same_time() -> None:
    world = World(delay_ms=40_000)
    world.clock.advance(39)
    assert not world.transport.reading
    world.clock.advance(AUTHENTICATION_TIMEOUT_S)
    assert world.transport.reading and not world.transport.aborted
    world.clock.advance(1)
    assert world.transport.aborted


def test_a_client_that_leaves_in_between() -> None:
    world = World()
    world.log_in(WRONG)
    world.transport.connected = False
    world.connection.connectionLost()
    world.clock.advance(DELAY_S)
    assert world.answers() == [] and world.complaints == []
    assert world.clock.getDelayedCalls() == []


def test_a_session_ends_at_the_next_request() -> None:
    world = World(max_session_ms=2000)
    world.log_in()
    assert decode_response(world.answer(), SaslAuthenticateResponse, 2).session_lifetime_ms == 2000
    world.clock.advance(2)
    assert world.is_served
    world.clock.advance(0.001)
    assert not world.is_served
    assert world.transport.aborted and "session has ended" in world.complaints[0]


def test_reauthentication_between_requests() -> None:
    world = World(max_session_ms=2000)
    world.log_in()
    world.answer()
    for _ in range(3):
        world.clock.advance(1.5)
        world.log_in()
        world.answer()
        assert world.is_served
    assert world.complaints == []
