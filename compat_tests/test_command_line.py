"""The command line that other tools rely on: arguments, exit codes, the ready line, and refusals."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

import kafkacompat
from compat_tests.brokers import ROOT, answers_api_versions
from compat_tests.ports import free_port
from compat_tests.waiting import until
from tests.kafkacompat.config.shipped import SHIPPED_WITH_KAFKA

Serve = Callable[..., subprocess.Popen[str]]


@pytest.fixture(autouse=True)
def _only_ours(broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("this is our command line")


def make_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kafkacompat", *arguments]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself, in *folder*."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        make_command(*arguments), cwd=folder, env=environment, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start ``kafkacompat serve`` in the test's folder; ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with (tmp_path / "stderr").open("w") as errors:
            process = subprocess.Popen(
                make_command("serve", *arguments),
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.wait(timeout=30)
        assert process.stdout is not None
        process.stdout.close()


def await_ready_line(process: subprocess.Popen[str], log: Path) -> str:
    """Return the first line on standard output; AssertionError with the log when the process ended first."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("kafkacompat ready"), f"{line!r}\n{log.read_text()}"
    return line


def make_overrides(**properties: str) -> Sequence[str]:
    names = {name.replace("_", "."): value for name, value in properties.items()}
    return [word for name, value in names.items() for word in ("--override", f"{name}={value}")]


def test_version_and_help(tmp_path: Path) -> None:
    assert kafkacompat.__version__ in run(tmp_path, "--version").stdout
    assert "serve" in run(tmp_path, "--help").stdout
    serve_help = run(tmp_path, "serve", "--help").stdout
    assert "--override" in serve_help
    assert "server.properties" in serve_help.lower()


def test_port_0_binds_a_free_port_and_the_ready_line_tells_it(serve: Serve, tmp_path: Path) -> None:
    process = serve(*make_overrides(listeners="PLAINTEXT://127.0.0.1:0"))
    line = await_ready_line(process, tmp_path / "stderr")
    match = re.search(r"PLAINTEXT://127\.0\.0\.1:(\d+)", line)
    assert match is not None, line
    assert answers_api_versions(int(match[1]))
    data = tmp_path / "kafkacompat-data"
    cluster_id = next(
        text.partition("=")[2]
        for text in (data / "meta.properties").read_text().splitlines()
        if text.startswith("cluster.id=")
    )
    assert cluster_id in line
    assert re.search(r"\b1\b", line)
    assert "kafkacompat-data" in line
    process.terminate()
    assert process.wait(timeout=30) == 0
    assert (data / ".kafka_cleanshutdown").exists()


def list_imported(log: Path) -> list[str]:
    """Return the modules that a process has imported so far, in that order."""
    lines = log.read_text().splitlines()
    return [line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")]


def test_a_start_does_not_load_the_group_coordinator(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    await_ready_line(serve(*make_overrides(listeners="PLAINTEXT://127.0.0.1:0")), tmp_path / "stderr")
    until(lambda: "kafkacompat.groups.coordinator" in list_imported(tmp_path / "stderr"))
    modules = list_imported(tmp_path / "stderr")
    start = modules[: modules.index("kafkacompat.wire.apis.metadata")]
    assert "kafkacompat.broker" in start
    coordinators = ("kafkacompat.coordination.", "kafkacompat.groups.", "kafkacompat.transactions.")
    assert {name for name in start if name.startswith(coordinators)} == {
        "kafkacompat.coordination.internal_topic",
        "kafkacompat.coordination.partition_events",
        "kafkacompat.coordination.replicated_log",
        "kafkacompat.groups.offsets_topic",
        "kafkacompat.transactions.topic",
    }
    assert "kafkacompat.transactions.coordinator" not in modules


def test_kafkas_own_properties_file_starts_unchanged(serve: Serve, tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "server.properties"
    file.write_text(SHIPPED_WITH_KAFKA)
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{free_port()}"
    advertised = f"PLAINTEXT://127.0.0.1:{port}"
    data = str(tmp_path / "data")
    process = serve(str(file), *make_overrides(listeners=listeners, advertised_listeners=advertised, log_dirs=data))
    line = await_ready_line(process, tmp_path / "stderr")
    assert str(port) in line
    assert "CONTROLLER" not in line
    assert answers_api_versions(port)


def test_unknown_properties_are_named_in_one_warning(serve: Serve, tmp_path: Path) -> None:
    process = serve(
        *make_overrides(listeners="PLAINTEXT://127.0.0.1:0", confluent_metrics_topic="x", my_own_setting="y")
    )
    await_ready_line(process, tmp_path / "stderr")
    lines = (tmp_path / "stderr").read_text().splitlines()
    assert len([line for line in lines if "confluent.metrics.topic" in line and "my.own.setting" in line]) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.partitions", "many"),
        ("num.partitions", "0"),
        ("log.segment.bytes", "12"),
        ("log.cleanup.policy", "shred"),
        ("listeners", "9092"),
        ("auto.create.topics.enable", "maybe"),
        ("kafkacompat.produce.validation", "sometimes"),
    ],
)
def test_bad_value_is_an_error_that_names_it(tmp_path: Path, name: str, value: str) -> None:
    done = run(tmp_path, "serve", "--override", f"{name}={value}")
    assert done.returncode == 2
    assert done.stdout == ""
    assert name in done.stderr
    assert value in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["serve", "absent.properties"], ["serve", "--override", "no-equals-sign"], ["frobnicate"]]
)
def test_bad_arguments(tmp_path: Path, arguments: list[str]) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert arguments[-1] in done.stderr
    assert list(tmp_path.iterdir()) == []


def assert_refused_in_one_sentence(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode != 0
    assert "kafkacompat ready" not in done.stdout
    sentences = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(sentences) == 1, done.stderr
    for word in words:
        assert word in sentences[0]


def test_second_start_on_a_data_directory_is_refused(serve: Serve, tmp_path: Path) -> None:
    port = free_port()
    await_ready_line(serve(*make_overrides(listeners=f"PLAINTEXT://127.0.0.1:{port}")), tmp_path / "stderr")
    done = run(tmp_path, "serve", *make_overrides(listeners="PLAINTEXT://127.0.0.1:0"))
    assert_refused_in_one_sentence(done, "kafkacompat-data")
    assert answers_api_versions(port)


def test_directory_that_another_program_locked_is_refused(tmp_path: Path) -> None:
    """Apache Kafka takes the same lock on the same file, so neither opens the other's directory."""
    data = tmp_path / "data"
    data.mkdir()
    with (data / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        done = run(tmp_path, "serve", *make_overrides(listeners="PLAINTEXT://127.0.0.1:0", log_dirs=str(data)))
    assert_refused_in_one_sentence(done, str(data))


def test_port_in_use_is_refused(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = run(tmp_path, "serve", *make_overrides(listeners=f"PLAINTEXT://127.0.0.1:{port}"))
    assert_refused_in_one_sentence(done, str(port))


@pytest.fixture
def hang_ups_reach_children() -> Iterator[None]:
    """Have processes that a test starts receive SIGHUP, also where nohup runs the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hang_ups_reach_children")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_before_any_client_exits_0(serve: Serve, tmp_path: Path, stop: signal.Signals) -> None:
    process = serve("--port", "0", "--data", "data")
    await_ready_line(process, tmp_path / "stderr")
    process.send_signal(stop)
    assert until(lambda: process.poll() is not None, timeout_seconds=30)
    assert process.returncode == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    ("sent", "words"), [(b"GET / HTTP/1.1\r\n\r\n", "an HTTP request"), (b"\x16\x03\x01\x02\x00\x01", "sends TLS")]
)
def test_a_client_of_another_protocol_is_named_in_one_line(
    serve: Serve, tmp_path: Path, sent: bytes, words: str
) -> None:
    line = await_ready_line(serve("--port", "0"), tmp_path / "stderr")
    port = re.search(r"127\.0\.0\.1:(\d+)", line)
    assert port is not None
    with closing(socket.create_connection(("127.0.0.1", int(port[1])))) as client:
        client.sendall(sent)
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
    until(lambda: (tmp_path / "stderr").read_text().count("closing 127.0.0.1") == 1)
    assert words in (tmp_path / "stderr").read_text()
