"""The state file, the lock, and the identity of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkacompat.cli.cluster.folder import (
    ClusterCommandError,
    ClusterFolder,
    ClusterState,
    ProcessIdentity,
    ProcessRecord,
    identify_process,
    this_process,
)

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs until its standard input ends."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@on_linux
def test_a_process_is_alive_until_it_ends(child: subprocess.Popen[bytes]) -> None:
    identity = identify_process(child.pid)
    assert identity.is_alive()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not identity.is_alive(), "it is a zombie"
    child.wait()
    assert not identity.is_alive()


@on_linux
def test_another_process_of_the_same_id_is_another_process(child: subprocess.Popen[bytes]) -> None:
    identity = identify_process(child.pid)
    assert not identity._replace(started=this_process().started).is_alive()
    assert not ProcessIdentity(child.pid, "").is_alive()


def state_of(*records: ProcessRecord) -> ClusterState:
    return ClusterState(
        "ready", os.getpid(), "then", "127.0.0.1:9092", "127.0.0.1:2181", list(records), addresses=[("", 9092)]
    )


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    assert folder.read_state() is None
    state = state_of(ProcessRecord("broker-1", "ready", "/log", 7, "then", "127.0.0.1:9092", 2, -9, "words"))
    folder.write_state(state)
    assert folder.read_state() == state
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2, "processes": []}', '{"version": 1, "processes": [{}]}']
)
def test_a_file_of_another_form_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(ClusterCommandError, match=r"cluster\.json is not the state of a cluster of this release"):
        ClusterFolder(tmp_path).read_state()


@on_linux
def test_orphans_are_the_processes_that_still_run(child: subprocess.Popen[bytes]) -> None:
    pid, started = identify_process(child.pid)
    alive = ProcessRecord("broker-1", "ready", "/log", pid, started)
    reused = ProcessRecord("broker-2", "ready", "/log", pid, "an earlier start")
    ended = ProcessRecord("broker-3", "pausing", "/log")
    assert state_of(alive, reused, ended).orphans() == [alive]


def test_only_one_supervisor_has_the_lock(tmp_path: Path) -> None:
    first, second = ClusterFolder(tmp_path), ClusterFolder(tmp_path)
    assert first.try_lock()
    assert not second.try_lock()
    first.unlock()
    assert second.try_lock()
    second.unlock()
