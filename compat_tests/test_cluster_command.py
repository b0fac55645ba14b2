"""`kafkacompat cluster` with real processes: a ZooKeeper and three brokers are started, described, killed and stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from compat_tests.batches import build
from compat_tests.brokers import ROOT, Broker, answers_api_versions
from compat_tests.ports import free_port
from compat_tests.processes import is_alive
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.waiting import until
from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.produce import ProduceResponse

LONGEST_S = 120
BROKERS = ("broker-1", "broker-2", "broker-3")
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def _only_ours(broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("this is our command line")


def refuses_zookeeper() -> bool:
    try:
        BrokerConfig.load(None, {"zookeeper.connect": "127.0.0.1:2181"})
    except ConfigError:
        return True
    return False


needs_zookeeper = pytest.mark.skipif(refuses_zookeeper(), reason="serve refuses zookeeper.connect so far")


def free_ports(count: int) -> int:
    """Return the first of *count* free ports in a row."""
    while True:
        first = free_port()
        if [free_port() for _ in range(count - 1)] == list(range(first + 1, first + count)):
            return first


def make_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kafkacompat", "cluster", *arguments]


def make_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself, in *folder*."""
    return subprocess.run(
        make_command(*arguments),
        cwd=folder,
        env=make_environment(),
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a cluster in the foreground, in the test's folder; everything has ended after the test."""
    started: list[subprocess.Popen[str]] = []

    def start_cluster(*arguments: str) -> subprocess.Popen[str]:
        with (tmp_path / "stderr").open("w") as errors:
            supervisor = subprocess.Popen(
                make_command("start", *arguments),
                cwd=tmp_path,
                env=make_environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        started.append(supervisor)
        return supervisor

    yield start_cluster
    for supervisor in started:
        supervisor.terminate()
        supervisor.wait(timeout=LONGEST_S)
        assert supervisor.stdout is not None
        supervisor.stdout.close()
    run(tmp_path, "stop")


def read_state(folder: Path) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((folder / "kafkacompat-cluster" / "cluster.json").read_text())
    return state


def pids_by_name(folder: Path) -> dict[str, int]:
    return {record["name"]: record["pid"] for record in read_state(folder)["processes"]}


def read_ready_line(supervisor: subprocess.Popen[str], errors: Path) -> list[str]:
    """Return the addresses of the ready line."""
    assert supervisor.stdout is not None
    line = supervisor.stdout.readline()
    assert line.startswith("kafkacompat cluster ready "), f"{line!r}\n{errors.read_text()}"
    return line.split()[3].split(",")


@pytest.mark.usefixtures("_only_ours")
@needs_zookeeper
def test_three_brokers_start_are_described_restarted_and_stopped(start: Start, tmp_path: Path) -> None:
    port = free_ports(3)
    supervisor = start("--port", str(port))
    addresses = read_ready_line(supervisor, tmp_path / "stderr")
    assert addresses == [f"127.0.0.1:{port + number}" for number in range(3)]
    assert all(answers_api_versions(port + number) for number in range(3))
    pids = pids_by_name(tmp_path)
    assert list(pids) == ["zookeeper", *BROKERS]
    assert all(is_alive(pid) for pid in pids.values())

    done = run(tmp_path, "status", "--json")
    assert done.returncode == 0, done.stderr
    described = json.loads(done.stdout)
    assert [process["stage"] for process in described["processes"]] == ["ready"] * 4
    # Each broker describes itself alone until serve has an effect for zookeeper.connect: then the list holds three brokers,
    # one controller and, with a topic of three replicas, their leaders and lags.
    assert described["brokers"][0]["port"] == port
    assert described["brokers"][0]["problem"] == ""

    os.kill(pids["broker-2"], signal.SIGKILL)
    until(lambda: pids_by_name(tmp_path)["broker-2"] not in (None, pids["broker-2"]))
    until(lambda: answers_api_versions(port + 1))
    assert "broker-2 ended with signal 9" in (tmp_path / "stderr").read_text()
    until(lambda: read_state(tmp_path)["processes"][2]["stage"] == "ready")
    assert read_state(tmp_path)["processes"][2]["restarts"] == 1

    pids = pids_by_name(tmp_path)
    assert run(tmp_path, "stop").returncode == 0
    assert supervisor.wait(timeout=LONGEST_S) == 0
    assert not any(is_alive(pid) for pid in pids.values())
    assert read_state(tmp_path)["stage"] == "ended"
    for name in BROKERS:
        assert (tmp_path / "kafkacompat-cluster" / name / "data" / ".kafka_cleanshutdown").exists()


@pytest.mark.usefixtures("_only_ours")
@needs_zookeeper
def test_a_detached_cluster_outlives_its_command_and_its_supervisor(start: Start, tmp_path: Path) -> None:
    port = free_ports(2)
    done = run(tmp_path, "start", "--brokers", "2", "--port", str(port), "--detach")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kafkacompat cluster ready ")
    second = run(tmp_path, "start", "--brokers", "2", "--port", str(port))
    assert (second.returncode, second.stdout) == (1, "")
    assert "a cluster runs in kafkacompat-cluster already" in second.stderr

    supervisor = read_state(tmp_path)["supervisor_pid"]
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not is_alive(supervisor))
    assert answers_api_versions(port) and answers_api_versions(port + 1)
    pids = pids_by_name(tmp_path)
    third = run(tmp_path, "start", "--brokers", "2", "--port", str(port))
    assert third.returncode == 1
    assert "zookeeper of an earlier start still runs" in third.stderr
    assert run(tmp_path, "stop").returncode == 0
    assert not any(is_alive(pid) for pid in pids.values())
    assert run(tmp_path, "stop").returncode == 1


@pytest.mark.usefixtures("_only_ours")
@pytest.mark.skipif(shutil.which("java") is None, reason="needs a JDK")
def test_a_broker_whose_port_is_taken_ends_a_detached_start_with_its_sentence(tmp_path: Path) -> None:
    """Without an effect of zookeeper.connect the sentence is that of the refused property."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = run(tmp_path, "start", "--brokers", "1", "--port", str(port), "--detach")
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    words = "zookeeper.connect" if refuses_zookeeper() else str(port)
    assert any("broker-1 ended with code" in line and words in line for line in done.stderr.splitlines())
    assert "broker-1 is given up" in done.stderr
    assert not any(pids_by_name(tmp_path).values())


@pytest.mark.usefixtures("_only_ours")
def test_bad_properties_end_with_2_in_one_sentence_and_make_nothing(tmp_path: Path) -> None:
    for detach in ([], ["--detach"]):
        done = run(tmp_path, "start", "--override", "num.partitions=0", *detach)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert "num.partitions=0 is not valid" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_status_describes_any_broker(broker: Broker, name: str, tmp_path: Path) -> None:
    with RawClient(broker.port) as client:
        topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        client.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), CreateTopicsResponse, 5)
        request = produce_request(name, {1: build([b"value" * 100])})
        until(lambda: not client.call(request, ProduceResponse, 7).responses[0].partition_responses[0].error_code)
    done = run(tmp_path, "status", "--bootstrap-server", broker.bootstrap, "--json")
    assert done.returncode == 0, done.stderr
    described = json.loads(done.stdout)
    (node,) = described["brokers"]
    assert (described["controller"], node["node_id"], node["port"], node["problem"]) == (1, 1, broker.port, "")
    assert node["is_controller"] and node["size_bytes"] > 500
    partitions = [partition for partition in described["partitions"] if partition["topic"] == name]
    assert [(partition["leader"], partition["isr"], partition["lags"]) for partition in partitions] == [
        (1, [1], {})
    ] * 2
    assert described["offline_partitions"] == described["under_replicated_partitions"] == 0
    shown = run(tmp_path, "status", "--bootstrap-server", broker.bootstrap)
    assert shown.returncode == 0
    assert f"127.0.0.1:{broker.port}" in shown.stdout and "live, controller" in shown.stdout
