"""The command line up to where a broker would be started."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import kafkacompat
from kafkacompat.cli import main
from kafkacompat.cli.process import log_start
from kafkacompat.config import BrokerConfig
from kafkacompat.wire import walk_form
from kafkacompat.wire.walk_form import FORM


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[BrokerConfig]:
    """The configurations that brokers would have been started with, in an empty current directory."""
    configs: list[BrokerConfig] = []
    monkeypatch.chdir(tmp_path)

    def run_broker(config: BrokerConfig, _test_mode: object) -> int:
        configs.append(config)
        return 0

    monkeypatch.setattr("kafkacompat.cli.serve.run_broker", run_broker)
    return configs


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_the_version_comes_with_the_form_of_the_walk() -> None:
    assert run("--version").output == f"kafkacompat {kafkacompat.__version__}, record walk {FORM}\n"


@pytest.mark.parametrize(("is_stale", "level"), [(False, logging.INFO), (True, logging.WARNING)])
def test_the_start_is_logged_with_the_form_of_the_walk(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_stale: bool, level: int
) -> None:
    form = walk_form.FORM._replace(name="plain", reason="for a reason", is_stale=is_stale)
    monkeypatch.setattr(walk_form, "FORM", form)
    with caplog.at_level(logging.INFO):
        log_start()
    line = f"Started kafkacompat {kafkacompat.__version__}, record walk plain (for a reason)"
    assert caplog.record_tuples == [("kafkacompat.cli.process", level, line)]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no device that is always full")
@pytest.mark.parametrize("arguments", [["--version"], ["topics", "list", "--help"]])
def test_a_help_text_that_cannot_be_written_is_one_sentence(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kafkacompat", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, b"kafkacompat: the output cannot be written: the disk is full\n")


def test_every_command_has_a_help_text() -> None:
    assert isinstance(main, click.Group)
    overview = run("--help").output
    for name, command in main.commands.items():
        assert name in overview
        assert command.help and run(name, "--help").output.startswith("Usage: ")


def test_options_win_over_variables_and_variables_over_the_file(
    started: list[BrokerConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server.properties").write_text("node.id=3\nnum.partitions=2\nlog.dirs=/file\nlog.retention.hours=1")
    monkeypatch.setenv("KAFKACOMPAT_NUM_PARTITIONS", "5")
    monkeypatch.setenv("KAFKACOMPAT_LOG_RETENTION_HOURS", "6")
    monkeypatch.setenv("KAFKACOMPAT_PORTABLE", "1")
    assert run("serve", "server.properties", "--data", "/data", "--override", "log.retention.hours=7").exit_code == 0
    (config,) = started
    assert (config.node_id, config.int("num.partitions"), config.log_dirs) == (3, 5, ("/data",))
    assert config.int("log.retention.hours") == 7
    assert config.unknown_names == ()


def test_a_variable_alone_leaves_the_development_defaults(
    started: list[BrokerConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKACOMPAT_BROKER_ID", "7")
    assert run("serve").exit_code == 0
    assert (started[0].node_id, started[0].log_dirs) == (7, ("./kafkacompat-data",))


def test_a_variable_that_is_no_property_is_named(
    started: list[BrokerConfig], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KAFKACOMPAT_NUM_PARTITION", "7")
    assert run("serve").exit_code == 0
    assert "num.partition from KAFKACOMPAT_NUM_PARTITION (did you mean num.partitions?)" in caplog.messages[0]


def test_host_and_port_move_the_listener(started: list[BrokerConfig], tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(
        "node.id=3\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER"
    )
    for arguments in (["--port", "0"], ["server.properties", "--port", "9"], ["--host", "::1"], ["--host", "[::1]"]):
        assert run("serve", *arguments).exit_code == 0
    assert [(config.listeners[0].host, config.listeners[0].port) for config in started] == [
        ("127.0.0.1", 0),
        ("", 9),
        ("::1", 9092),
        ("::1", 9092),
    ]
    assert started[1].text("listeners") == "PLAINTEXT://:9,CONTROLLER://:9093"


@pytest.mark.parametrize(("arguments", "level"), [([], "INFO"), (["--log-level", "warn"], "WARNING")])
def test_the_log_level(
    arguments: list[str], level: str, started: list[BrokerConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    monkeypatch.setattr(logging, "basicConfig", lambda level, handlers: given.append(level))
    assert run("serve", *arguments).exit_code == 0
    assert [logging.getLevelName(number) for number in given] == [level]


def test_without_a_file_the_development_defaults_hold(started: list[BrokerConfig]) -> None:
    assert run("serve").exit_code == 0
    (config,) = started
    assert (config.node_id, config.log_dirs) == (1, ("./kafkacompat-data",))


def test_a_file_and_overrides(started: list[BrokerConfig], tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("node.id=3\nnum.partitions=2\nlog.dirs=/data")
    result = run("serve", "server.properties", "--override", "num.partitions = 4", "--override", "a.b=c=d")
    assert result.exit_code == 0
    (config,) = started
    assert (config.node_id, config.int("num.partitions"), config.log_dirs) == (3, 4, ("/data",))
    assert config.given["a.b"] == "c=d"


def test_strict_starts_with_properties_that_only_have_no_effect(started: list[BrokerConfig]) -> None:
    assert run("serve", "--strict", "--override", "num.io.threads=3").exit_code == 0
    assert len(started) == 1


def test_a_file_is_read_as_java_reads_it(started: list[BrokerConfig], tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_bytes(b"node.id=1\nlog.dirs=/d\xe9\\u20ac")
    assert run("serve", "server.properties").exit_code == 0
    assert started[0].log_dirs == ("/dé€",)


def test_unknown_and_idle_properties_get_one_line_each(
    started: list[BrokerConfig], caplog: pytest.LogCaptureFixture
) -> None:
    arguments = [word for name in ("x.y", "a.b") for word in ("--override", f"{name}=1")]
    with caplog.at_level(logging.WARNING):
        assert run("serve", *arguments, "--override", "num.io.threads=3").exit_code == 0
    unknown, idle = caplog.messages
    assert "a.b, x.y" in unknown and "num.io.threads" in idle
    assert len(started) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--override", "num.partitions=0"], "num.partitions=0 is not valid: it takes a whole number of 1 or more"),
        (["--override", "control.plane.listener.name=C"], "control.plane.listener.name=C is not served"),
        (["--override", "num.partitions"], "'num.partitions' is not of the form name=value"),
        (["--override", "=1"], "'=1' is not of the form name=value"),
        (["absent.properties"], "absent.properties"),
        (["bad.properties"], "the properties file cannot be read"),
        (["one", "too many"], "too many"),
        (["--frobnicate"], "--frobnicate"),
        (["--strict", "--override", "num.partition=3"], "num.partition (did you mean num.partitions?)"),
        (["--data", "a", "--override", "log.dirs=b"], "give one of them"),
        (["--port", "65536"], "65536"),
        (["--host", "two words"], "PLAINTEXT://two words:9092 is not valid"),
        (["two.properties", "--port", "9"], "set listeners by --override"),
        (["advertised.properties", "--host", "127.0.0.1"], "PLAINTEXT://a:9 tells clients another address"),
        (["unreadable.properties"], "unreadable.properties"),
    ],
)
def test_serve_with_bad_arguments_exits_with_2_and_creates_nothing(
    arguments: list[str], words: str, started: list[BrokerConfig], tmp_path: Path
) -> None:
    (tmp_path / "bad.properties").write_text("node.id=1\na=\\u12")
    (tmp_path / "one").touch()
    (tmp_path / "two.properties").write_text(
        "node.id=1\nlisteners=A://:1,B://:2\nlistener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"
    )
    (tmp_path / "advertised.properties").write_text("node.id=1\nadvertised.listeners=PLAINTEXT://a:9")
    (tmp_path / "unreadable.properties").symlink_to("/proc/self/mem")
    before = sorted(tmp_path.iterdir())
    result = run("serve", *arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert started == []
    assert sorted(tmp_path.iterdir()) == before


def test_a_bad_value_is_reported_in_one_sentence(started: list[BrokerConfig]) -> None:
    result = run("serve", "--override", "listeners=9092")
    assert len(result.output.strip().splitlines()) == 1
    assert "listeners=9092" in result.output
