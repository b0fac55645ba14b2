"""What a broker's process does with signals."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from kafkacompat.cli.process import stop_on_hangup


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
