"""One client's connection: order, back-pressure, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.handlers.context import Pending, UnanswerableError
from kafkacompat.server.connection import (
    MAX_IN_FLIGHT_REQUESTS,
    MAX_REQUESTS_PER_TURN,
    MAX_UNSENT_BYTES,
    KafkaConnection,
    Shared,
)
from kafkacompat.server.frame_budget import FrameBudget
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.compiler import encode
from kafkacompat.wire.frames import SIZE
from kafkacompat.wire.headers import RequestHeader
from kafkacompat.wire.schema import Request, Versions


class Address:
    host = "192.0.2.1"
    port = 1234


class Transport:
    """Takes parts like the zero-copy transport; ``stuck_bytes`` is what the client has not read."""

    def __init__(self) -> None:
        self.connected = True
        self.reading = True
        self.closing = self.aborted = False
        self.sent = b""
        self.stuck_bytes = 0
        self.on_drained: Callable[[], None] | None = None
        self.read_ahead: object = None

    @property
    def queued_bytes(self) -> int:
        return self.stuck_bytes

    def getHost(self) -> Address:
        return Address()

    def getPeer(self) -> Address:
        return Address()

    def send_parts(self, parts: list[bytes]) -> None:
        self.sent += b"".join(parts)

    def pauseProducing(self) -> None:
        self.reading = False

    def resumeProducing(self) -> None:
        self.reading = True

    def abortConnection(self) -> None:
        self.aborted = True
        self.connected = False

    def loseConnection(self) -> None:
        self.closing = True


class Served:
    request: type[Request] = HeartbeatRequest
    versions = Versions(0, 4)


class Dispatcher:
    """Answers with what a test put in ``results``, else at once."""

    def __init__(self) -> None:
        self.handlers = {12: Served}
        self.results: list[Any] = []
        self.seen: list[int] = []

    def dispatch(self, incoming: Any, context: Any) -> Any:
        self.seen.append(incoming.correlation_id)
        result = self.results.pop(0) if self.results else HeartbeatResponse()
        if isinstance(result, Exception):
            raise result
        return result

    def failure(self, incoming: Any, problem: BaseException) -> Any:
        if isinstance(problem, UnanswerableError):
            raise problem
        return HeartbeatResponse(error_code=1)


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.dispatcher = Dispatcher()
        self.complaints: list[str] = []
        self.budget = FrameBudget(1_000_000, lambda: 0)
        self.connections: set[KafkaConnection] = set()
        shared = Shared(
            "PLAINTEXT",
            self.dispatcher,  # type: ignore[arg-type]
            self.budget,
            1_000_000,
            self.clock,
            self.connections,
            lambda host, text: self.complaints.append(text),
        )
        self.connection = KafkaConnection(shared, lambda *_: Deferred())
        self.transport = Transport()
        self.connection.makeConnection(self.transport)

    def receive(self, *correlation_ids: int) -> None:
        self.connection.dataReceived(b"".join(map(request, correlation_ids)))

    def answered(self) -> list[int]:
        """Correlation ids of the answers sent, each a frame of ten bytes."""
        sent = self.transport.sent
        return [SIZE.unpack_from(sent, position + 4)[0] for position in range(0, len(sent), 10)]

    def pending(self, *, dispatched: bool = True) -> Pending[HeartbeatResponse]:
        pending: Pending[HeartbeatResponse] = Pending(Deferred(), None if dispatched else Deferred())
        self.dispatcher.results.append(pending)
        return pending


def request(correlation_id: int) -> bytes:
    header = RequestHeader(request_api_key=12, request_api_version=0, correlation_id=correlation_id, client_id="c")
    content = encode(header, 1) + encode(HeartbeatRequest(), 0)
    return SIZE.pack(len(content)) + content


def test_requests_are_answered_at_once() -> None:
    world = World()
    world.receive(1, 2)
    assert world.answered() == [1, 2]
    assert world.budget.held_bytes == 0


def test_a_late_answer_holds_back_later_answers_but_not_later_requests() -> None:
    world = World()
    pending = world.pending()
    world.receive(1, 2)
    assert world.dispatcher.seen == [1, 2]
    assert world.answered() == []
    pending.response.callback(HeartbeatResponse())
    assert world.answered() == [1, 2]


def test_an_undispatched_request_holds_back_later_requests_and_reading() -> None:
    world = World()
    pending = world.pending(dispatched=False)
    world.receive(1, 2)
    assert world.dispatcher.seen == [1]
    assert not world.transport.reading
    assert world.budget.held_bytes > 0
    assert pending.dispatched is not None
    pending.dispatched.callback(None)
    assert world.dispatcher.seen == [1, 2]
    assert world.transport.reading
    pending.response.callback(HeartbeatResponse())
    assert world.answered() == [1, 2]
    assert world.budget.held_bytes == 0


def test_too_many_requests_in_flight_pause_reading() -> None:
    world = World()
    waiting = [world.pending() for _ in range(MAX_IN_FLIGHT_REQUESTS)]
    world.receive(*range(MAX_IN_FLIGHT_REQUESTS + 1))
    assert len(world.dispatcher.seen) == MAX_IN_FLIGHT_REQUESTS
    assert not world.transport.reading
    waiting[0].response.callback(HeartbeatResponse())
    assert len(world.dispatcher.seen) == MAX_IN_FLIGHT_REQUESTS + 1
    assert world.transport.reading


def test_a_connection_lets_others_have_their_turn() -> None:
    world = World()
    count = MAX_REQUESTS_PER_TURN + 5
    world.receive(*range(count))
    assert len(world.answered()) == MAX_REQUESTS_PER_TURN
    assert not world.transport.reading
    world.clock.advance(0)
    assert world.answered() == list(range(count))
    assert world.transport.reading
    assert world.budget.held_bytes == 0


def test_a_client_that_does_not_read_gets_no_more_work_done() -> None:
    world = World()
    world.transport.stuck_bytes = MAX_UNSENT_BYTES
    world.receive(1)
    assert world.dispatcher.seen == []
    assert not world.transport.reading
    world.transport.stuck_bytes = 0
    assert world.transport.on_drained is not None
    world.transport.on_drained()
    assert world.answered() == [1]
    assert world.transport.reading


def test_no_answer_for_no_response() -> None:
    world = World()
    pending = world.pending()
    world.receive(1, 2)
    pending.response.callback(None)  # type: ignore[arg-type]
    assert world.answered() == [2]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xff\xff\xff", "claims -1"),
        (b"\0\0\0\1x", "1 bytes"),
        (b"\0\0\0\x0a\0\x63\0\0\0\0\0\1\xff\xff", "API key 99"),
    ],
)
def test_what_cannot_be_answered_closes_the_connection_with_one_line(data: bytes, reason: str) -> None:
    world = World()
    world.receive(1)
    world.connection.dataReceived(data)
    assert world.answered() == [1]
    assert world.transport.aborted
    assert len(world.complaints) == 1
    assert "192.0.2.1:1234" in world.complaints[0]
    assert reason in world.complaints[0]


def test_an_unanswerable_failure_closes_after_the_answers_before_it() -> None:
    world = World()
    world.dispatcher.results = [HeartbeatResponse(), UnanswerableError("no place for it")]
    world.receive(1, 2, 3)
    assert world.answered() == [1]
    assert world.transport.aborted
    assert world.dispatcher.seen == [1, 2]


def test_a_late_failure_is_answered_or_closes() -> None:
    world = World()
    answerable, not_answerable = world.pending(), world.pending()
    world.receive(1, 2)
    answerable.response.errback(RuntimeError("broken"))
    assert world.answered() == [1]
    not_answerable.response.errback(UnanswerableError("no place for it"))
    assert world.transport.aborted


def test_a_lost_connection_gives_up_what_it_waited_for() -> None:
    world = World()
    given_up: list[object] = []
    response: Deferred[HeartbeatResponse] = Deferred(given_up.append)
    world.dispatcher.results.append(Pending(response, abandonable=True))
    kept_on = world.pending()
    world.receive(1, 2)
    world.transport.connected = False
    world.connection.connectionLost(Failure(ConnectionDone()))
    assert given_up == [response]
    assert not kept_on.response.called
    kept_on.response.callback(HeartbeatResponse())
    assert world.connections == set()
    assert world.budget.held_bytes == 0
    assert world.complaints == []


def test_finishing_answers_what_was_asked_and_closes() -> None:
    world = World()
    pending = world.pending()
    world.receive(1)
    world.connection.finish()
    assert not world.transport.closing
    pending.response.callback(HeartbeatResponse())
    assert world.answered() == [1]
    assert world.transport.closing
