"""Requests to other brokers: connections by purpose, deadlines, back-off, and peers that fail."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import CancelledError

from kafkacompat.backoff import JITTER
from kafkacompat.client.errors import (
    ConnectionLostError,
    RequestFailedError,
    RequestNotSentError,
    RequestTimedOutError,
    UnsupportedRequestError,
)
from kafkacompat.client.settings import BrokerAddress
from kafkacompat.wire.apis.alter_partition import AlterPartitionRequest
from kafkacompat.wire.apis.api_versions import ApiVersionsResponse
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest
from tests.kafkacompat.client.world import (
    BACKOFF_S,
    MAX_BACKOFF_S,
    MAX_FRAME_BYTES,
    PORT,
    SETUP_TIMEOUT_S,
    Outcome,
    World,
)


def list_numbers(requests: list[Any]) -> list[int]:
    return [request.body.generation_id for request in requests]


def test_the_first_request_connects_and_later_ones_use_the_connection() -> None:
    world = World()
    broker = world.broker(2)
    assert broker.accepted == []
    first, second = world.request(number=1), world.request(number=2)
    world.turn()
    (connection,) = broker.accepted
    assert list_numbers(connection.requests) == [1, 2]
    assert connection.requests[0].client_id == "broker-1"
    third = world.request(number=3)
    world.turn()
    assert list_numbers(connection.requests) == [1, 2, 3]
    assert first.is_open and second.is_open and third.is_open
    for error_code in (7, 8, 9):
        connection.answer_next(error_code)
    world.turn()
    assert [outcome.response.error_code for outcome in (first, second, third)] == [7, 8, 9]
    assert world.timers() == 0
    assert len(broker.accepted) == 1


def test_each_broker_and_purpose_has_a_connection_of_its_own() -> None:
    world = World()
    two, three = world.broker(2), world.broker(3)
    slow, quick, other = world.request(2, "fetch"), world.request(2, "control"), world.request(3, "fetch")
    world.turn()
    assert (len(two.accepted), len(three.accepted)) == (2, 1)
    two.accepted[1].answer_next()
    three.accepted[0].answer_next()
    world.turn()
    assert slow.is_open and not quick.is_open and not other.is_open


def test_the_highest_common_version_is_sent_and_the_cap_holds() -> None:
    for cap, version in ((None, 4), (2, 2)):
        world = World(cap={12: cap}.get)
        broker = world.broker(2)
        world.request()
        world.turn()
        assert broker.accepted[0].requests[0].api_version == version


def test_a_request_that_the_broker_does_not_have_fails_by_itself() -> None:
    world = World()
    broker = world.broker(2)
    before = world.request()
    unknown = Outcome(world.connections.request(world.addresses[2], "p", AlterPartitionRequest(), timeout_s=1))
    after = world.request()
    world.turn()
    assert isinstance(unknown.problem, UnsupportedRequestError)
    assert str(unknown.problem) == (
        "AlterPartitionRequest was not sent to broker 2 at host-2:9092: AlterPartitionRequest has the versions 0 to 3,"
        " but the peer has none"
    )
    assert before.is_open and after.is_open and len(broker.accepted[0].requests) == 2


def test_a_request_with_wrong_values_fails_by_itself() -> None:
    world = World()
    broker = world.broker(2)
    wrong: Any = HeartbeatRequest(generation_id="one")  # type: ignore[arg-type]
    outcome = Outcome(world.connections.request(world.addresses[2], "p", wrong, timeout_s=1))
    good = world.request()
    world.turn()
    assert outcome.problem is not None and not isinstance(outcome.problem, RequestFailedError)
    assert good.is_open and len(broker.accepted[0].requests) == 1


def test_a_request_that_fails_while_it_is_written_ends_the_connection_alone() -> None:
    world = World()
    broker = world.broker(2)
    groups: Any = [*(f"group-{number}" for number in range(1000)), None]
    outcomes = [
        Outcome(world.connections.request(world.addresses[2], "p", request, timeout_s=30))
        for request in (DescribeGroupsRequest(groups=groups), HeartbeatRequest(generation_id=1))
    ]
    world.turn()
    assert isinstance(outcomes[0].problem, ConnectionLostError)
    assert "a message cannot be coded" in str(outcomes[0].problem)
    world.clock.advance(BACKOFF_S * (1 + JITTER))
    world.turn()
    assert outcomes[1].is_open and list_numbers(broker.accepted[1].requests) == [1]


# Deadlines


def test_a_request_past_its_deadline_closes_the_connection() -> None:
    world = World()
    broker = world.broker(2)
    patient, hasty = world.request(timeout_s=9), world.request(timeout_s=2)
    elsewhere = world.request(purpose="q")
    world.turn()
    world.clock.advance(1.9)
    assert hasty.is_open
    world.clock.advance(0.1)
    assert isinstance(hasty.problem, RequestTimedOutError)
    assert str(hasty.problem) == "HeartbeatRequest has no response from broker 2 at host-2:9092 within 2 s"
    assert isinstance(patient.problem, ConnectionLostError)
    assert str(patient.problem) == (
        "HeartbeatRequest has no response from broker 2 at host-2:9092: the broker has not answered HeartbeatRequest within 2 s"
    )
    world.turn()
    assert broker.accepted[0].lost is not None
    assert elsewhere.is_open and broker.accepted[1].lost is None


def test_an_answer_in_time_ends_the_deadline() -> None:
    world = World()
    broker = world.broker(2)
    answered = world.request(timeout_s=2)
    world.turn()
    broker.accepted[0].answer_next()
    world.turn()
    world.clock.advance(100)
    assert answered.response is not None and broker.accepted[0].lost is None


def test_a_request_that_finds_no_connection_in_time_was_not_sent() -> None:
    world = World()
    broker = world.broker(2)
    broker.lists_versions = False
    hasty, patient = world.request(timeout_s=2), world.request(timeout_s=60)
    world.turn()
    world.clock.advance(2)
    assert isinstance(hasty.problem, RequestNotSentError)
    assert str(hasty.problem).endswith("there was no connection within 2 s")
    # The attempt goes on, for its own time.
    assert patient.is_open and broker.accepted[0].lost is None
    world.clock.advance(SETUP_TIMEOUT_S - 2)
    assert isinstance(patient.problem, RequestNotSentError)
    assert str(patient.problem).endswith("the connection was not ready within 10 s")
    world.turn()
    assert broker.accepted[0].lost is not None
    assert world.timers() == 0


def test_a_cancelled_request_is_taken_back_or_its_answer_dropped() -> None:
    world = World()
    broker = world.broker(2)
    unsent, kept = world.request(number=1), world.request(number=2)
    unsent.result.cancel()
    world.turn()
    (connection,) = broker.accepted
    assert list_numbers(connection.requests) == [2]
    assert isinstance(unsent.problem, CancelledError)
    dropped, last = world.request(number=3, timeout_s=1), world.request(number=4)
    world.turn()
    dropped.result.cancel()
    world.clock.advance(5)
    for _ in range(3):
        connection.answer_next()
    world.turn()
    assert isinstance(dropped.problem, CancelledError)
    assert kept.response is not None and last.response is not None and connection.lost is None


# Connections that fail


def test_a_broker_that_closes_fails_its_unanswered_requests() -> None:
    world = World()
    broker = world.broker(2)
    first, second = world.request(), world.request()
    world.turn()
    broker.accepted[0].answer_next()
    broker.accepted[0].transport.loseConnection()
    world.turn()
    assert first.response is not None
    assert isinstance(second.problem, ConnectionLostError)
    assert str(second.problem).endswith("the broker closed the connection")
    assert world.timers() == 0


def test_an_idle_connection_that_ends_is_made_again_for_the_next_request() -> None:
    world = World()
    broker = world.broker(2)
    world.request()
    world.turn()
    broker.accepted[0].answer_next()
    broker.accepted[0].transport.loseConnection()
    world.turn()
    world.clock.advance(MAX_BACKOFF_S)
    assert len(broker.accepted) == 1
    again = world.request()
    world.turn()
    broker.accepted[1].answer_next()
    world.turn()
    assert again.response is not None


def test_a_refused_connection_fails_waiting_requests() -> None:
    world = World()
    world.broker(2, listens=False)
    first, second = world.request(), world.request()
    world.turn()
    for outcome in (first, second):
        assert isinstance(outcome.problem, RequestNotSentError)
        assert str(outcome.problem) == (
            "HeartbeatRequest was not sent to broker 2 at host-2:9092: cannot connect: nothing listens there"
        )
    assert world.timers() == 0


def test_an_unknown_host_and_a_silent_one_are_named() -> None:
    world = World(setup_timeout_s=3)
    world.addresses[4] = BrokerAddress(4, "nowhere", PORT)
    unknown = world.request(4)
    world.broker(2)
    world.network.cut("here", "host-2")
    silent = world.request(2)
    world.turn()
    assert str(unknown.problem).endswith("cannot connect: the host name cannot be resolved")
    world.clock.advance(3)
    assert isinstance(silent.problem, RequestNotSentError)
    assert world.timers() == 0


def test_attempts_wait_longer_and_longer_with_jitter() -> None:
    world = World()
    world.broker(2, listens=False)
    waits = []
    for _ in range(8):
        before = world.clock.seconds()
        outcome = world.request()
        world.turn()
        while outcome.is_open:
            world.clock.advance(0.001)
            world.turn()
        waits.append(world.clock.seconds() - before)
    assert waits[0] == 0
    for number, wait_s in enumerate(waits[1:]):
        expected_s = min(BACKOFF_S * 2**number, MAX_BACKOFF_S)
        assert expected_s * (1 - JITTER) <= wait_s <= expected_s * (1 + JITTER) + 0.002
    # Not all of them are equal.
    assert len({round(wait_s, 3) for wait_s in waits[-3:]}) > 1


def test_a_success_begins_the_backoff_again() -> None:
    world = World()
    broker = world.broker(2, listens=False)
    for _ in range(6):
        world.request()
        world.clock.advance(MAX_BACKOFF_S * 2)
        world.turn()
    world.listen(2, broker)
    answered = world.request()
    world.clock.advance(MAX_BACKOFF_S * 2)
    world.turn()
    broker.accepted[0].answer_next()
    broker.accepted[0].transport.loseConnection()
    world.turn()
    assert answered.response is not None
    world.request()
    world.clock.advance(BACKOFF_S * (1 + JITTER))
    world.turn()
    assert len(broker.accepted) == 2


def test_requests_during_the_backoff_share_one_attempt() -> None:
    world = World()
    broker = world.broker(2, listens=False)
    world.request()
    world.turn()
    world.listen(2, broker)
    for number in range(5):
        world.request(number=number)
    world.turn()
    assert broker.accepted == []
    world.clock.advance(BACKOFF_S * (1 + JITTER))
    world.turn()
    assert list_numbers(broker.accepted[0].requests) == [0, 1, 2, 3, 4]


def test_no_attempt_is_made_for_requests_that_are_gone() -> None:
    world = World()
    broker = world.broker(2, listens=False)
    world.request()
    world.turn()
    world.listen(2, broker)
    late = world.request(timeout_s=0.01)
    world.clock.advance(MAX_BACKOFF_S)
    world.turn()
    assert isinstance(late.problem, RequestNotSentError)
    assert broker.accepted == [] and world.timers() == 0


def test_a_request_made_while_another_fails_gets_a_new_connection() -> None:
    world = World()
    broker = world.broker(2)
    again: list[Outcome] = []
    first = world.request(number=1)
    first.result.addCallback(lambda _: again.append(world.request(number=2)))
    world.turn()
    broker.accepted[0].transport.abortConnection()
    world.turn()
    assert isinstance(first.problem, ConnectionLostError) and again[0].is_open
    world.clock.advance(BACKOFF_S * (1 + JITTER))
    world.turn()
    assert list_numbers(broker.accepted[1].requests) == [2]


def test_a_silent_broker_is_given_up_and_found_again() -> None:
    world = World()
    broker = world.broker(2)
    world.request()
    world.turn()
    broker.accepted[0].answer_next()
    world.turn()
    world.network.cut("here", "host-2")
    lost = world.request(timeout_s=5)
    world.clock.advance(5)
    assert isinstance(lost.problem, RequestTimedOutError)
    world.network.heal("here", "host-2")
    world.clock.advance(MAX_BACKOFF_S)
    answered = world.request()
    world.turn()
    broker.accepted[1].answer_next()
    world.turn()
    assert answered.response is not None


# Addresses that change, and the end


def test_another_address_gets_another_connection() -> None:
    world = World()
    old, new = world.broker(2), world.broker(3)
    before = world.request(2)
    world.turn()
    world.addresses[2] = BrokerAddress(2, "host-3", PORT)
    after = world.request(2)
    world.turn()
    assert isinstance(before.problem, ConnectionLostError)
    assert str(before.problem).endswith("the address is now that of broker 2 at host-3:9092")
    assert old.accepted[0].lost is not None
    new.accepted[0].answer_next()
    world.turn()
    assert after.response is not None


def test_a_forgotten_broker_loses_its_connections_alone() -> None:
    world = World()
    two, three = world.broker(2), world.broker(3)
    gone = [world.request(2, "fetch"), world.request(2, "control")]
    kept = world.request(3)
    world.turn()
    world.connections.forget(2)
    world.connections.forget(7)
    world.turn()
    assert all(isinstance(outcome.problem, ConnectionLostError) for outcome in gone)
    assert all(connection.lost is not None for connection in two.accepted)
    three.accepted[0].answer_next()
    world.turn()
    assert kept.response is not None


def test_after_the_close_nothing_is_sent_and_no_timer_is_left() -> None:
    world = World()
    world.broker(2)
    world.broker(3, listens=False)
    world.broker(4).lists_versions = False
    sent, refused, setting_up = world.request(2), world.request(3), world.request(4)
    world.turn()
    waiting = world.request(3)
    assert not refused.is_open and waiting.is_open
    world.connections.close()
    world.turn()
    assert isinstance(sent.problem, ConnectionLostError)
    assert isinstance(waiting.problem, RequestNotSentError) and isinstance(setting_up.problem, RequestNotSentError)
    late = world.request(2)
    assert isinstance(late.problem, RequestNotSentError)
    assert str(late.problem) == "HeartbeatRequest was not sent to broker 2 at host-2:9092: this broker stops"
    assert world.timers() == 0


def test_the_close_gives_up_an_attempt_to_connect() -> None:
    world = World()
    broker = world.broker(2)
    world.network.cut("here", "host-2")
    outcome = world.request()
    world.turn()
    world.connections.close()
    assert isinstance(outcome.problem, RequestNotSentError) and world.timers() == 0
    world.network.heal("here", "host-2")
    world.turn()
    assert all(connection.lost is not None for connection in broker.accepted)


# Hostile brokers


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ((MAX_FRAME_BYTES + 1).to_bytes(4, "big"), "a frame claims 100001 bytes"),
        (b"\xff\xff\xff\xff", "a frame claims -1 bytes"),
        (b"\0\0\0\2ab", "no whole header"),
        (b"\0\0\0\x04\0\0\0\x63", "the correlation id 99, but"),
        (b"\0\0\0\x05\0\0\0\1\0", "HeartbeatResponse v4 cannot be read"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a frame claims 1213486160 bytes"),
    ],
)
def test_an_unreadable_response_closes_the_connection(data: bytes, reason: str) -> None:
    world = World()
    broker = world.broker(2)
    outcome = world.request()
    world.turn()
    broker.accepted[0].transport.write(data)
    world.turn()
    assert isinstance(outcome.problem, ConnectionLostError) and reason in str(outcome.problem)
    assert broker.accepted[0].lost is not None
    assert world.timers() == 0


def test_more_frames_than_requests_end_the_connection() -> None:
    world = World()
    broker = world.broker(2)
    answered = world.request()
    world.turn()
    broker.accepted[0].answer_next()
    broker.accepted[0].transport.write(b"\0\0\0\x0a\0\0\0\2\0\0\0\0\0\0\0")
    world.turn()
    assert answered.response is not None and broker.accepted[0].lost is not None


def test_a_failed_negotiation_fails_the_waiting_requests() -> None:
    world = World()
    world.broker(2).versions = ApiVersionsResponse(error_code=87)
    outcome = world.request()
    world.turn()
    assert isinstance(outcome.problem, RequestNotSentError)
    assert str(outcome.problem).endswith("the peer answers ApiVersions v4 with the error 87")
