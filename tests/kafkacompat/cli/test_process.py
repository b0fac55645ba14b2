"""What a broker's process does with signals, and with a clock that is set."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest
from twisted.internet.base import ReactorBase

from kafkacompat.cli.process import stop_on_hangup
from kafkacompat.reactors import make_steady
from kafkacompat.timers import now_ms, steady_ms


class Reactor:
    """Collects what a signal handler asks for."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def callFromThread(self, call: Callable[[], None]) -> None:
        self.calls.append(call)


@pytest.fixture(autouse=True)
def _kept_handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


def stop() -> None:
    """Stand for the reactor's end."""


def test_a_hangup_stops_the_reactor() -> None:
    reactor = Reactor()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    stop_on_hangup(reactor, stop)
    os.kill(os.getpid(), signal.SIGHUP)
    assert reactor.calls == [stop]


def test_under_nohup_a_hangup_is_ignored() -> None:
    reactor = Reactor()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop_on_hangup(reactor, stop)
    os.kill(os.getpid(), signal.SIGHUP)
    assert reactor.calls == []


class MachineClock:
    """The time of day, which may be set, and the time since the machine started, which may not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.day_s, self.running_s = 1_700_000_000.0, 1_000.0
        monkeypatch.setattr("time.time", lambda: self.day_s)
        monkeypatch.setattr("time.monotonic", lambda: self.running_s)

    def advance(self, seconds: float) -> None:
        self.day_s += seconds
        self.running_s += seconds


class QuietReactor(ReactorBase):
    """A reactor with timers alone."""

    def installWaker(self) -> None:
        """Have no descriptors."""


@pytest.mark.parametrize("set_s", [-3600, 3600])
def test_timers_do_not_follow_a_clock_that_is_set(monkeypatch: pytest.MonkeyPatch, set_s: float) -> None:
    machine = MachineClock(monkeypatch)
    reactor = make_steady(QuietReactor)()
    fired: list[str] = []
    reactor.callLater(5, fired.append, "timer")
    machine.advance(1)
    machine.day_s += set_s
    reactor.runUntilCurrent()
    assert (fired, round(reactor.timeout())) == ([], 4)
    # Timestamps follow the machine's clock, durations do not.
    assert now_ms(reactor) == (1_700_000_001 + set_s) * 1000
    assert steady_ms(reactor) == 1_700_000_001_000
    machine.advance(4)
    reactor.runUntilCurrent()
    assert fired == ["timer"]
