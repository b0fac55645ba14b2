"""Clients whose library does not return from a call, or knows no offset of an acknowledged value."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.history import producing
from kafkacompat.history.client import EXIT_REPLACE, LONGEST_CALL_S, ClientOrders, HistoryClient
from kafkacompat.history.events import Acknowledged, HistoryPartition, decode_event


class FakeTimer:
    """A timer that fires when the test says so."""

    timers: list[FakeTimer] = []

    def __init__(self, interval_s: float, function: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.interval_s, self._function, self._args = interval_s, function, args
        self.daemon = self.is_active = False
        FakeTimer.timers.append(self)

    def start(self) -> None:
        assert self.daemon
        self.is_active = True

    def cancel(self) -> None:
        self.is_active = False

    def fire(self) -> None:
        if self.is_active:
            self._function(*self._args)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HistoryClient]:
    monkeypatch.setattr("threading.Timer", FakeTimer)
    monkeypatch.setattr("signal.signal", lambda *_: signal.SIG_DFL)
    FakeTimer.timers.clear()
    yield HistoryClient(
        ClientOrders(
            role="copier",
            ordinal=0,
            incarnation=0,
            bootstrap="localhost:1",
            config={},
            topic_prefix="t",
            throughput=1.0,
            isolation="read_committed",
            group_protocol="classic",
            session_timeout_ms=1000,
            transactional=True,
            seed=1,
            folder=str(tmp_path),
            parent=os.getppid(),
        )
    )


def test_a_call_that_returns_stops_its_timer(client: HistoryClient) -> None:
    assert client.retry(lambda: 7) == 7
    (timer,) = FakeTimer.timers
    assert (timer.interval_s, timer.is_active) == (LONGEST_CALL_S, False)


def test_a_call_that_does_not_return_ends_the_process(
    client: HistoryClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)
    client.retry(lambda: FakeTimer.timers[-1].fire())
    assert codes == [EXIT_REPLACE]
    assert "copier-0.0: ends, as " in capsys.readouterr().err


class FakeProducer:
    """A producer that acknowledges when the test says so."""

    def __init__(self, _settings: dict[str, Any]) -> None:
        self.callbacks: list[Callable[[Any, Any], None]] = []

    def produce(self, _topic: str, _value: str, *, partition: int, on_delivery: Callable[[Any, Any], None]) -> None:
        self.callbacks.append(on_delivery)


class FakeMessage:
    """A delivered message. librdkafka knows no offset of a message that the broker took for a duplicate."""

    def offset(self) -> None:
        return None


def test_a_value_may_be_acknowledged_without_an_offset(client: HistoryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producing, "Producer", FakeProducer)
    sender = producing.ValueSender(client)
    sender.send(HistoryPartition("records", 0))
    fake: Any = sender.producer
    fake.callbacks[0](None, FakeMessage())
    _, acknowledged = map(decode_event, client.orders.recording_path.read_bytes().splitlines())
    assert isinstance(acknowledged, Acknowledged) and acknowledged.offset == -1
