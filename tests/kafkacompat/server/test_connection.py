"""One client's connection: order, back-pressure, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, UnanswerableError
from kafkacompat.server.connection import MAX_IN_FLIGHT_REQUESTS, MAX_REQUESTS_PER_TURN, MAX_UNSENT_BYTES
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkacompat.wire.apis.heartbeat import HeartbeatResponse
from tests.kafkacompat.server.regions import is_closed, log_file, make_region
from tests.kafkacompat.server.world import World, make_request


def make_response(part: FileRegion) -> FetchResponse:
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[PartitionData(records=part)])])


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


def test_a_request_in_order_holds_back_later_requests_and_reading() -> None:
    world = World()
    pending = world.pending(in_order=True)
    world.receive(1, 2)
    assert world.dispatcher.seen == [1]
    assert not world.transport.reading
    assert world.budget.held_bytes > 0
    pending.response.callback(HeartbeatResponse())
    assert world.dispatcher.seen == [1, 2]
    assert world.transport.reading
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
def test_an_unanswerable_request_closes_the_connection_with_one_log_line(data: bytes, reason: str) -> None:
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
    assert "no place for it" in world.complaints[0]


@pytest.mark.parametrize("late", [True, False])
def test_an_answer_that_cannot_be_encoded_closes_and_lets_go_of_its_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, late: bool
) -> None:
    world, file = World(), log_file(tmp_path / "log", b"abc")
    response = make_response(make_region(file, 0, 3))
    response.responses[0].partitions[0].error_code = 1 << 16
    if late:
        pending = world.pending()
        world.receive(1, 2)
        pending.response.callback(response)  # type: ignore[arg-type]
    else:
        world.dispatcher.results.append(response)
        world.receive(1, 2)
    assert world.transport.aborted
    assert len(world.complaints) == 1
    assert "could not be served" in caplog.text
    assert is_closed(file)


def test_a_request_in_order_holds_back_later_requests_until_its_effects_are_settled() -> None:
    world = World()
    pendings = [world.pending(in_order=True) for _ in range(3)]
    settled: list[Deferred[None]] = [Deferred() for _ in range(3)]
    for pending, deferred in zip(pendings, settled, strict=True):
        pending.settled = deferred
    world.receive(1, 2, 3, 4)
    assert world.dispatcher.seen == [1]
    settled[0].callback(None)
    assert world.dispatcher.seen == [1, 2]
    pendings[0].response.callback(HeartbeatResponse())
    assert world.dispatcher.seen == [1, 2]
    # An answer that is there settles everything.
    pendings[1].response.callback(HeartbeatResponse())
    settled[1].callback(None)
    assert world.dispatcher.seen == [1, 2, 3]
    world.lose()
    settled[2].callback(None)
    assert (world.dispatcher.seen, world.answered()) == ([1, 2, 3], [1, 2])


def test_an_answer_for_a_gone_connection_lets_go_of_its_files(tmp_path: Path) -> None:
    world, file = World(), log_file(tmp_path / "log", b"abc")
    given_up: Deferred[FetchResponse] = Deferred(
        lambda deferred: deferred.callback(make_response(make_region(file, 0, 3)))
    )
    world.dispatcher.results.append(Pending(given_up, abandonable=True))
    kept_on = world.pending()
    world.receive(1, 2)
    world.lose()
    assert given_up.called
    kept_on.response.callback(make_response(make_region(file, 1, 2)))  # type: ignore[arg-type]
    assert is_closed(file)


def test_a_lost_connection_cancels_pending_responses() -> None:
    world = World()
    given_up: list[object] = []
    response: Deferred[HeartbeatResponse] = Deferred(given_up.append)
    world.dispatcher.results.append(Pending(response, abandonable=True))
    kept_on = world.pending()
    world.receive(1, 2)
    held_bytes = world.budget.held_bytes
    world.connection.dataReceived(make_request(3)[:-1])
    world.lose()
    assert given_up == [response]
    assert not kept_on.response.called
    assert 2 * world.budget.held_bytes == held_bytes
    kept_on.response.callback(HeartbeatResponse())
    assert world.connections == set()
    assert world.budget.held_bytes == 0
    assert world.complaints == []


def test_finish_answers_pending_requests_and_closes() -> None:
    world = World()
    pending = world.pending()
    world.receive(1)
    world.connection.finish()
    assert not world.transport.closing
    pending.response.callback(HeartbeatResponse())
    assert world.answered() == [1]
    assert world.transport.closing
