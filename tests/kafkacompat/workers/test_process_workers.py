"""Processes that hang, that die and that have another code than the broker, as those notice who need them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.wire.errors import ErrorCode
from kafkacompat.workers import processes
from kafkacompat.workers.process import DiedError
from kafkacompat.workers.processes import ProcessWorkers
from tests.kafkacompat.metadata.deferreds import outcome, refusal

TIMEOUT_S = 300
LONG_S = 10
"""So long at most a test waits for another thread."""


class Reactor(Clock):
    """Makes one call for a thread when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: queue.Queue[tuple[Callable[..., Any], tuple[Any, ...]]] = queue.Queue()

    def callFromThread(self, function: Callable[..., Any], *args: Any) -> None:
        self._calls.put((function, args))

    def turn(self) -> None:
        function, args = self._calls.get(timeout=LONG_S)
        function(*args)


class FakeProcess:
    """Answers with what it was called for, and not at all when that is "hang"."""

    def __init__(self) -> None:
        self.begun = self.overdue = self.ended = False
        self.asked = threading.Event()
        self._killed = threading.Event()

    @property
    def works(self) -> bool:
        return self.begun and not self._killed.is_set()

    def begin(self) -> None:
        pass

    def call(self, name: str, *_: Any) -> tuple[bool, Any]:
        self.asked.set()
        if name == "hang":
            assert self._killed.wait(LONG_S)
            raise DiedError("killed")
        return False, name

    def give_up(self) -> None:
        self.overdue = True
        self.kill()

    def kill(self) -> None:
        self._killed.set()

    def end(self) -> None:
        self.ended = True
        self.kill()


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reactor = Reactor()
        self.started: list[FakeProcess] = []
        self.code = b"the broker's"
        monkeypatch.setattr(processes, "Process", self._start)
        monkeypatch.setattr(processes, "fingerprint_sources", lambda: self.code)
        monkeypatch.setattr(processes, "first_fingerprint", lambda: b"the broker's")
        self.while_starting: Callable[[], None] = lambda: None
        self.workers = ProcessWorkers(self.reactor, 1, "conversion", timeout_s=TIMEOUT_S)

    def _start(self) -> FakeProcess:
        self.while_starting()
        self.started.append(FakeProcess())
        return self.started[-1]

    def run(self, name: str) -> Deferred[Any]:
        return self.workers.run(lambda call: call(name))

    def result(self, name: str) -> Deferred[Any]:
        """As `run`, when it is done."""
        running = self.run(name)
        self.reactor.turn()
        return running


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(monkeypatch)
    yield made
    made.workers.close()
    assert made.reactor.getDelayedCalls() == []
    assert all(process.ended for process in made.started)


def test_a_process_is_used_again(world: World) -> None:
    assert [outcome(world.result("a")), outcome(world.result("b"))] == ["a", "b"]
    assert len(world.started) == 1


def test_one_that_hangs_is_killed_and_replaced_and_clients_ask_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    outcome(world.result("a"))
    (process,) = world.started
    process.asked.clear()
    hanging, behind = world.run("hang"), world.run("b")
    assert process.asked.wait(LONG_S)
    world.reactor.advance(TIMEOUT_S - 1)
    assert process.works
    world.reactor.advance(1)
    for _ in range(2):
        world.reactor.turn()
    assert refusal(hanging) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert outcome(behind) == "b"
    assert process.ended and len(world.started) == 2
    assert caplog.messages == ["Killed a process for conversion that gave no answer for 300 s"]


def test_after_an_upgrade_no_process_starts_and_running_ones_continue(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    outcome(world.result("a"))
    world.code = b"another"
    assert outcome(world.result("b")) == "b"
    world.reactor.advance(processes.IDLE_SECONDS)
    for _ in range(2):
        assert refusal(world.result("c")) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert len(world.started) == 1
    assert caplog.messages == ["Stopped conversion, because the files of kafkacompat were replaced: restart the broker"]


def test_an_upgrade_while_a_process_starts_is_noticed(world: World) -> None:
    def upgrade() -> None:
        world.code = b"another"

    world.while_starting = upgrade
    assert refusal(world.result("a")) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    (process,) = world.started
    assert process.ended and not process.asked.is_set()
