"""`kafkacompat verify history` beside its runs: what it says of a recorded history, and what it refuses."""

from __future__ import annotations

import importlib.util
import json
import socket
import tempfile
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli import main, verify_history
from kafkacompat.history.broker import RunError
from kafkacompat.history.events import Event, encode_event
from kafkacompat.history.run import RunTally
from tests.kafkacompat.history.anomalies import Spoiling, lose
from tests.kafkacompat.history.simulation import sound_history


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", "history", *arguments])


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs have their folders."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def write_history(path: Path, events: Iterable[Event]) -> str:
    path.write_bytes(b"".join(map(encode_event, events)))
    return str(path)


def test_a_sound_history(tmp_path: Path) -> None:
    result = run("--check", write_history(tmp_path / "history", sound_history(1)))
    assert result.exit_code == 0
    assert "transactions committed" in result.stdout and "aborted read" in result.stdout
    assert result.stderr == "0 findings\n"


def test_a_report_in_json(tmp_path: Path) -> None:
    spoiling = Spoiling(sound_history(1), Random(1))
    lose(spoiling)
    result = run("--json", "--check", write_history(tmp_path / "history", spoiling.events))
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["counts"]["transactions committed"] > 0
    checks = {check["check"]: check for check in report["checks"]}
    assert checks["lost"]["found"] == len(checks["lost"]["first"]) > 0
    assert (checks["torn"]["first"], report["missing"]) == ([], [])
    operations = report["operations"]
    assert operations["tried"] == operations["acknowledged"] + operations["indeterminate"] > 0
    assert report["faults"]["paused"] == 1 and report["findings"]["lost"] == checks["lost"]["found"]
    assert all(report["longest_gaps_s"][clients] >= 0 for clients in ("writers", "readers", "groups"))


def test_a_history_with_a_finding(tmp_path: Path) -> None:
    spoiling = Spoiling(sound_history(1), Random(1))
    lose(spoiling)
    result = run("--check", write_history(tmp_path / "history", spoiling.events))
    assert result.exit_code == 1
    assert "lost: " in result.stdout and "but read_committed does not find it" in result.stdout


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nothing\n", "history, line 1: b'nothing\\n' is not an event of a history"),
        ("", "the history is not enough to judge by: nothing was acknowledged, nothing was read"),
    ],
)
def test_a_file_that_is_no_history_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "history"
    path.write_text(text)
    result = run("--check", str(path))
    assert (result.exit_code, why in result.stderr.replace("\\\\", "\\")) == (2, True), result.stderr


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = run("--check", str(tmp_path / "none"))
    assert result.exit_code == 2 and "there is no such file or folder" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--bootstrap-server", "localhost:1", "--kills", "3"], "needs --restart-command"),
        (["--restart-command", "true"], "works only with --bootstrap-server"),
        (["--bootstrap-server", "localhost"], "'localhost' is not of the form HOST:PORT"),
        (["--command-config", __file__], "works only with --bootstrap-server"),
        (["--command-config", "/none/at/all"], "does not exist"),
        (
            ["--bootstrap-server", "localhost:1", "--override", "a=b"],
            "--override does not work with --bootstrap-server",
        ),
        (["--bootstrap-server", "localhost:1", "--brokers", "3"], "--brokers does not work with --bootstrap-server"),
        (["--producers", "0"], "0 is not in the range"),
        (["--override", "x"], "'x' is not of the form name=value"),
    ],
)
def test_options_that_make_no_sense(arguments: list[str], why: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2 and why in result.stderr


class MadeUp:
    """A run that has happened already, and how it went."""

    def __init__(self, tally: RunTally, failure: BaseException | None = None) -> None:
        self.tally, self._failure = tally, failure
        self.is_cleared = False

    def make_history(self, target: Path) -> int:
        if self._failure is not None:
            raise self._failure
        return len(write_history(target, sound_history(1)))

    def delete_topics(self) -> None:
        self.is_cleared = True


@pytest.mark.parametrize(
    ("made_up", "exit_code", "why"),
    [
        (MadeUp(RunTally()), 0, "0 findings"),
        (MadeUp(RunTally(replacement_reasons=["it was fenced"])), 0, "Replaced a client: it was fenced"),
        (MadeUp(RunTally(client_failures=["copier-0.1 failed"])), 2, "not enough to judge by: copier-0.1 failed"),
        (MadeUp(RunTally(), KeyboardInterrupt()), 2, "kafkacompat: interrupted"),
        (MadeUp(RunTally(), RunError("the broker is gone")), 2, "kafkacompat: the broker is gone"),
    ],
)
def test_how_a_run_ends(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, made_up: MadeUp, exit_code: int, why: str
) -> None:
    monkeypatch.setattr(verify_history, "Run", lambda *_: made_up)
    result = run()
    assert (result.exit_code, why in result.stderr) == (exit_code, True), result.stderr
    assert made_up.is_cleared == (exit_code == 0)
    assert not any(temporary.iterdir())


def test_an_unreachable_broker_is_reported(temporary: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        result = run("--bootstrap-server", address)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"kafkacompat: no broker answers at {address}: ")
    assert not any(temporary.iterdir())


def test_without_confluent_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = run()
    assert result.exit_code == 2
    assert "needs confluent-kafka: run pip install '.[cli]' in a clone of kafkacompat" in result.stderr


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"PATH": "/nowhere", "JAVA_HOME": ""}, "java is not on the PATH, and ZooKeeper needs it: install a JDK 11"),
        ({"JAVA_HOME": "/nowhere"}, "JAVA_HOME (/nowhere) holds no bin/java"),
    ],
)
def test_a_cluster_without_a_jdk(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], why: str
) -> None:
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    result = run("--brokers", "3")
    assert (result.exit_code, result.stdout) == (2, "") and result.stderr.startswith(f"kafkacompat: {why}")
    assert not any(temporary.iterdir())


def test_events_are_lines_of_json(tmp_path: Path) -> None:
    lines = Path(write_history(tmp_path / "history", sound_history(1))).read_text().splitlines()
    assert {"event", "time_ns", "client"} <= set(json.loads(lines[0]))
