"""The request for further brokers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.cli.cluster import growth
from kafkacompat.cli.cluster.folder import ClusterCommandError, ClusterFolder, ClusterState, ProcessRecord, this_process
from kafkacompat.cli.cluster.growth import add_brokers, check_growth, read_running


def running_state(brokers: int = 3) -> ClusterState:
    own = this_process()
    records = [
        ProcessRecord(f"broker-{number}", "ready", "/log", address=f"127.0.0.1:{65_000 + number}")
        for number in range(1, brokers + 1)
    ]
    return ClusterState("ready", own.pid, own.started, "", "zk", records, growths=0)


@pytest.fixture
def folder(tmp_path: Path) -> ClusterFolder:
    cluster = ClusterFolder(tmp_path)
    cluster.write_state(running_state())
    return cluster


def test_a_cluster_that_does_not_run_is_refused(folder: ClusterFolder) -> None:
    state = running_state()
    assert read_running(folder) == state
    changes: list[tuple[dict[str, Any], str]] = [
        ({"stage": "stopping"}, "is not ready"),
        ({"supervisor_started": "long ago"}, "is not ready"),
        ({"growths": None}, "was started by an older release"),
    ]
    for change, words in changes:
        folder.write_state(ClusterState(**{**vars(state), **change}))
        with pytest.raises(ClusterCommandError, match=words):
            read_running(folder)
    with pytest.raises(ClusterCommandError, match="holds no cluster"):
        read_running(ClusterFolder(folder.path / "other"))


def test_fewer_brokers_and_ports_that_do_not_exist_are_refused() -> None:
    check_growth(running_state(), 3)
    for brokers, words in [(2, "less than the 3 brokers"), (600, "the last one would listen on 65600")]:
        with pytest.raises(ClusterCommandError, match=words) as problem:
            check_growth(running_state(), brokers)
        assert problem.value.exit_code == 2


@pytest.mark.parametrize(
    ("port", "words"),
    [(9096, "the port 9096 is needed twice, as 5 brokers"), (65_533, "the last one would listen on 65537")],
)
def test_every_listener_needs_a_port_for_each_broker(port: int, words: str) -> None:
    state = running_state()
    state.addresses = [("127.0.0.1", 9092), ("", port), ("", 0)]
    with pytest.raises(ClusterCommandError, match=words) as problem:
        check_growth(state, 5)
    assert problem.value.exit_code == 2


class FakeSupervisor:
    """Receives the signal, and changes the state with each pause."""

    def __init__(self, folder: ClusterFolder, stages: list[str]) -> None:
        self._folder = folder
        self._stages = stages
        self.state = running_state()
        self.signals: list[tuple[int, int]] = []

    def receive(self, pid: int, number: int) -> None:
        self.signals.append((pid, number))

    def pause(self, _seconds: float) -> None:
        if not self._stages:
            return
        if self.state.growths == 0:
            self.state.growths = 1
            for number in range(4, self._folder.read_wanted_brokers() + 1):
                self.state.processes.append(ProcessRecord(f"broker-{number}", "starting", "/log"))
        self.state.processes[-1].stage = self._stages.pop(0)
        self.state.processes[-1].sentence = "the disk is full"
        self._folder.write_state(self.state)


def supervised(folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch, stages: list[str]) -> FakeSupervisor:
    supervisor = FakeSupervisor(folder, stages)
    kill: Callable[[int, int], None] = supervisor.receive
    monkeypatch.setattr(os, "kill", kill)
    return supervisor


def test_brokers_are_awaited(folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = supervised(folder, monkeypatch, ["starting", "pausing", "starting", "ready"])
    state = add_brokers(folder, 4, supervisor.pause)
    assert [record.name for record in state.brokers][3:] == ["broker-4"]
    assert supervisor.signals == [(os.getpid(), signal.SIGUSR1)]


def test_a_broker_that_is_given_up_is_named(folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = supervised(folder, monkeypatch, ["starting", "given up"])
    with pytest.raises(ClusterCommandError, match="broker-4 cannot be started: the disk is full"):
        add_brokers(folder, 4, supervisor.pause)


def test_an_earlier_failure_does_not_count(folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = supervised(folder, monkeypatch, ["ready"])
    supervisor.state.processes.append(ProcessRecord("broker-4", "given up", "/log", sentence="an earlier one"))
    folder.write_state(supervisor.state)
    supervisor.state.growths = 0
    assert add_brokers(folder, 3, supervisor.pause).brokers[-1].stage == "ready"


def test_patience_has_an_end(folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "LONGEST_START_S", 1.0)
    supervisor = supervised(folder, monkeypatch, ["starting"])
    with pytest.raises(ClusterCommandError, match="broker-4 is not ready after 1 s"):
        add_brokers(folder, 4, supervisor.pause)
