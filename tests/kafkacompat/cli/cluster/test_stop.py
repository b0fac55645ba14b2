"""`kafkacompat cluster stop` signals the processes of its folder, and no others."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli import main
from kafkacompat.cli.cluster.folder import ClusterFolder, ClusterState, ProcessRecord, identify_process

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")

HOLDS_LOCK = """
import signal, sys
from pathlib import Path
from kafkacompat.cli.cluster.folder import ClusterFolder
folder = ClusterFolder(Path(sys.argv[1]))
assert folder.try_lock()
print("locked", flush=True)
signal.pause()
"""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs until its standard input ends."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def run(folder: Path) -> Result:
    return CliRunner().invoke(main, ["cluster", "stop", "--data", str(folder)])


def write_state(folder: Path, supervisor: tuple[int, str], *records: ProcessRecord) -> None:
    ClusterFolder(folder).write_state(ClusterState("ready", *supervisor, "", "zk", list(records)))


@pytest.mark.parametrize("name", ["", "absent"])
def test_a_folder_without_a_cluster(tmp_path: Path, name: str) -> None:
    result = run(tmp_path / name)
    assert (result.exit_code, result.output) == (
        1,
        f"kafkacompat: {tmp_path / name} holds no cluster: name its folder with --data\n",
    )
    assert list(tmp_path.iterdir()) == []


def test_the_supervisor_receives_sigterm(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDS_LOCK, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"locked\n"
        write_state(tmp_path, identify_process(supervisor.pid))
        result = run(tmp_path)
        assert (result.exit_code, supervisor.wait()) == (0, -signal.SIGTERM)


def test_a_supervisor_that_is_not_the_one_of_the_state_is_not_signalled(
    tmp_path: Path, child: subprocess.Popen[bytes]
) -> None:
    write_state(tmp_path, (child.pid, "another start"))
    running = ClusterFolder(tmp_path)
    assert running.try_lock()
    result = run(tmp_path)
    running.unlock()
    assert result.exit_code == 1
    assert "cannot be identified: end the process of kafkacompat cluster start with SIGTERM" in result.output
    assert child.poll() is None


def test_processes_that_a_killed_supervisor_left_are_ended(tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
    pid, started = identify_process(child.pid)
    write_state(tmp_path, (1, "long ago"), ProcessRecord("broker-1", "ready", "/log", pid, started))
    result = run(tmp_path)
    assert result.exit_code == 0
    assert f"Stopping broker-1, process {pid}, whose supervisor was killed" in result.output
    assert child.wait() == -signal.SIGTERM


def test_a_process_that_was_given_an_old_id_is_left_alone(tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
    write_state(
        tmp_path, (child.pid, "long ago"), ProcessRecord("broker-1", "ready", "/log", child.pid, "another start")
    )
    result = run(tmp_path)
    assert (result.exit_code, result.output) == (1, f"kafkacompat: no cluster runs in {tmp_path}\n")
    assert child.poll() is None
    assert ClusterFolder(tmp_path).try_lock(), "the lock is free again"
