"""Answers that may come later."""

from __future__ import annotations

from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.handlers.context import Pending
from kafkacompat.wire.apis.heartbeat import HeartbeatResponse


def test_an_answer_that_is_there_does_not_have_to_be_waited_for() -> None:
    response = HeartbeatResponse()
    assert Pending(succeed(response)).unwrap_if_ready() is response


def test_a_late_or_failed_response_is_not_ready() -> None:
    problem: Deferred[HeartbeatResponse] = fail(ValueError())
    behind_another = succeed(None).addCallback(lambda _: Deferred[HeartbeatResponse]())
    for response in (Deferred[HeartbeatResponse](), problem, behind_another):
        pending = Pending(response)
        assert pending.unwrap_if_ready() is pending
    problem.addErrback(lambda failure: failure.trap(ValueError))
