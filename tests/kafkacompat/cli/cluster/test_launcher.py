"""Real processes: their ready lines, exits, last words and logs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from kafkacompat.cli.cluster import launcher as launcher_module
from kafkacompat.cli.cluster.launcher import (
    EXIT_NOT_STARTED,
    ProcessExit,
    ProcessLauncher,
    ProcessPlan,
    await_ready_line,
    read_sentence,
    trim_log,
)

LONGEST_S = 60
SERVES = """
import signal, sys
print("a line of the log", file=sys.stderr)
print("a line before")
print("kafkacompat ready PLAINTEXT://127.0.0.1:9092 INTERNAL://127.0.0.1:9093 node.id=1", flush=True)
signal.pause()
"""
FAILS = """
import sys
print("2026-11-23 WARNING something", file=sys.stderr)
print("kafkacompat: port 9092 is in use: stop the other process", file=sys.stderr)
sys.exit(1)
"""


class Events:
    """Receives what a launcher reports, in the thread of the test."""

    def __init__(self) -> None:
        self._calls: Queue[tuple[Callable[..., Any], tuple[Any, ...]]] = Queue()
        self.noted: list[tuple[Any, ...]] = []

    def call_in_reactor(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._calls.put((function, arguments))

    def note_ready(self, name: str, address: str) -> None:
        self.noted.append((name, address))

    def note_exit(self, name: str, end: ProcessExit) -> None:
        self.noted.append((name, end))

    def take_next(self) -> tuple[Any, ...]:
        function, arguments = self._calls.get(timeout=LONGEST_S)
        function(*arguments)
        return self.noted.pop()


def make_launcher(events: Events, folder: Path, *command: str) -> ProcessLauncher:
    plan = ProcessPlan("broker-1", list(command), folder, folder / "broker.log", await_ready_line)
    return ProcessLauncher({"broker-1": plan}, events.call_in_reactor, None)


def test_a_process_becomes_ready_and_ends_by_a_signal(tmp_path: Path) -> None:
    events = Events()
    launcher = make_launcher(events, tmp_path / "broker-1", sys.executable, "-c", SERVES)
    identity = launcher.start("broker-1", events)
    assert identity is not None
    assert events.take_next() == ("broker-1", "127.0.0.1:9092")
    assert os.getsid(identity.pid) == identity.pid, "a terminal's Ctrl-C must not reach it"
    launcher.terminate("broker-1")
    assert events.take_next() == ("broker-1", ProcessExit(-15, ""))
    launcher.kill("broker-1")
    assert not identity.is_alive()


def test_a_process_that_fails_at_once_is_known_by_its_sentence(tmp_path: Path) -> None:
    events = Events()
    launcher = make_launcher(events, tmp_path, sys.executable, "-c", FAILS)
    launcher.start("broker-1", events)
    end = ProcessExit(1, "port 9092 is in use: stop the other process")
    assert events.take_next() == ("broker-1", end)


def test_a_process_that_cannot_be_started_is_an_exit(tmp_path: Path) -> None:
    events = Events()
    launcher = make_launcher(events, tmp_path, str(tmp_path / "absent"))
    assert launcher.start("broker-1", events) is None
    launcher.terminate("broker-1")
    name, end = events.take_next()
    assert (name, end.code) == ("broker-1", EXIT_NOT_STARTED)
    assert "absent: there is no such file or folder" in end.sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", ""),
        ("one\ntwo\n\n", "two"),
        ("kafkacompat: first\nkafkacompat: second\nAborted\n", "second"),
        ("kafkacompat: a \x1b[31mred\x1b[0m word", "a \\x1b[31mred\\x1b[0m word"),
        ("x" * 5000, "x" * 1000),
    ],
)
def test_last_words(tmp_path: Path, text: str, sentence: str) -> None:
    log = tmp_path / "log"
    log.write_text(f"kafkacompat: of an earlier start\n{text}")
    assert read_sentence(log, len("kafkacompat: of an earlier start\n")) == sentence


def test_last_words_of_a_log_that_began_anew_or_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert read_sentence(log, 0) == ""
    log.write_text("kafkacompat: words")
    assert read_sentence(log, 1_000_000) == "words"


def test_a_log_is_bounded_and_its_process_goes_on_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher_module, "MAX_LOG_BYTES", 10)
    log, older = tmp_path / "broker.log", tmp_path / "broker.log.1"
    with log.open("ab", buffering=0) as process:
        process.write(b"123456789")
        trim_log(log)
        assert not older.exists()
        process.write(b"0")
        trim_log(log)
        process.write(b"abc")
    assert (older.read_bytes(), log.read_bytes()) == (b"1234567890", b"abc")
    trim_log(tmp_path / "absent.log")
