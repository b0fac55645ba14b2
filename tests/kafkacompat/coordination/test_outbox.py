"""Responses are sent only after the operation that decided on them has ended."""

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.coordination.outbox import Outbox
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import DELAY_S, World, take_response


def test_answers_wait_for_the_outermost_operation() -> None:
    outbox = Outbox()
    events: list[object] = []
    waiting: list[Deferred[int]] = [Deferred(), Deferred()]
    for answer in waiting:
        answer.addCallback(events.append)

    def inner() -> None:
        outbox.answer(waiting[1], 1)
        events.append("inner is over")

    def outer() -> None:
        outbox.answer(waiting[0], 0)
        outbox.run(inner)
        events.append("outer is over")

    outbox.run(outer)
    assert events == ["inner is over", "outer is over", 0, 1]


def test_answers_leave_even_if_the_operation_fails() -> None:
    outbox = Outbox()
    waiting: Deferred[int] = Deferred()

    def fails() -> None:
        outbox.answer(waiting, 1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        outbox.run(fails)
    assert take_response(waiting) == 1


def test_a_client_may_send_its_next_request_from_within_its_answer() -> None:
    world = World()
    (first, joining), (second, other) = world.join_twice(), world.join_twice()
    seen: list[object] = []

    def leave_at_once(_: object) -> None:
        seen.append(world.leave(first))
        seen.append(world.heartbeat(second, 1))

    joining.addCallback(leave_at_once)
    world.wait(3 * int(DELAY_S))
    assert seen == [[ErrorCode.NONE], ErrorCode.REBALANCE_IN_PROGRESS]
    assert take_response(other).generation_id == 1
