"""The events of a controller: one at a time, repeated while ZooKeeper does not confirm them, and none after its end."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kafkacompat.cluster.controller_events import REPEAT_S, ControllerEvents
from kafkacompat.metadata.store import StoreError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.zookeeper.client import ConnectionLossError


class World:
    """Events, and the doubts of the controller."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.doubts: list[float] = []
        self.events = ControllerEvents(self.clock, lambda: self.doubts.append(self.clock.seconds()))
        self.done: list[str] = []

    async def wait(self, name: str, until: Deferred[None]) -> str:
        await until
        self.done.append(name)
        return name


def test_an_event_waits_for_the_one_before() -> None:
    world = World()
    first = Deferred[None]()
    world.events.run(lambda: world.wait("first", first))
    second = world.events.run(lambda: world.wait("second", succeed(None)))
    assert not world.done and not second.called
    first.callback(None)
    assert world.done == ["first", "second"] and second.called


def test_work_that_waits_fails_when_the_controller_resigns() -> None:
    world = World()
    first = Deferred[None]()
    failures: list[Any] = []
    world.events.run(lambda: world.wait("first", first))
    world.events.run(lambda: world.wait("second", succeed(None))).addErrback(failures.append)
    world.events.stop()
    first.callback(None)
    assert world.done == ["first"] and failures[0].value.code is ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize(
    "problem",
    [StoreError("no answer"), ConnectionLossError("lost"), KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not written")],
)
def test_an_unconfirmed_event_is_repeated(problem: Exception) -> None:
    world = World()
    outcomes = [fail(problem), succeed(None)]

    async def work() -> None:
        await world.wait("work", outcomes.pop(0))

    world.events.handle(work, "a change")
    assert world.doubts == [0] and not world.done
    world.clock.advance(REPEAT_S)
    assert world.done == ["work"]


def test_a_defect_is_logged_and_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    world = World()

    async def work() -> None:
        raise ValueError("a defect")

    world.events.handle(work, "a change")
    assert "The controller failed to handle a change" in caplog.text
    assert not world.doubts and not world.clock.getDelayedCalls()


def test_a_request_is_repeated_until_it_is_answered_or_the_controller_resigns() -> None:
    world = World()
    answers: list[Deferred[str]] = [fail(ConnectionLossError("lost")), succeed("answer")]
    results: list[Any] = []
    Deferred.fromCoroutine(world.events.insist(lambda: answers.pop(0))).addBoth(results.append)
    world.clock.advance(REPEAT_S)
    assert results == ["answer"]
    lost = Deferred.fromCoroutine(world.events.insist(lambda: fail(ConnectionLossError("lost"))))
    lost.addErrback(results.append)
    world.events.stop()
    world.clock.advance(REPEAT_S)
    assert results[1].value.code is ErrorCode.NOT_CONTROLLER
