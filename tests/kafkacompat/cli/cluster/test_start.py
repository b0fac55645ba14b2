"""`kafkacompat cluster start` up to where processes would be started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli import main
from kafkacompat.cli.cluster.folder import ClusterFolder, ClusterState, ProcessRecord, identify_process


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["cluster", "start", *arguments])


@pytest.mark.parametrize("detach", [[], ["--detach"]])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--brokers", "0"], "--brokers"),
        (["--override", "log.dirs=x"], "--override log.dirs=x is not possible"),
        (["--override", "num.partitions=0"], "num.partitions=0 is not valid"),
        (["absent.properties"], "absent.properties"),
    ],
)
def test_bad_input_ends_with_2_and_makes_nothing(
    arguments: list[str], detach: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments, *detach)
    assert result.exit_code == 2
    assert words in result.output
    assert list(tmp_path.iterdir()) == []


def test_without_java_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run()
    assert (result.exit_code, len(result.output.splitlines())) == (1, 1)
    assert result.output.startswith("kafkacompat: java is not on the PATH")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_cluster_runs_is_refused(tmp_path: Path) -> None:
    running = ClusterFolder(tmp_path)
    assert running.try_lock()
    result = run("--zookeeper", "zk:2181", "--data", str(tmp_path))
    running.unlock()
    assert result.exit_code == 1
    assert f"a cluster runs in {tmp_path} already: stop it with kafkacompat cluster stop" in result.output


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_processes_that_a_killed_supervisor_left_are_named(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as orphan:
        record = ProcessRecord("broker-2", "ready", "/log", *identify_process(orphan.pid))
        ClusterFolder(tmp_path).write_state(ClusterState("ready", 1, "long ago", "", "zk", [record]))
        result = run("--zookeeper", "zk:2181", "--data", str(tmp_path))
        orphan.kill()
    assert result.exit_code == 1
    assert f"broker-2 of an earlier start still runs as process {orphan.pid}: end it with" in result.output


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("--zookeeper", "zk:2181", "--data", str(tmp_path / "file" / "cluster"))
    assert result.exit_code == 1
    assert "a part of the path is a file, not a folder" in result.output


def test_without_a_number_the_folder_says_how_many_brokers_start(tmp_path: Path) -> None:
    records = [ProcessRecord(f"broker-{number}", "stopped", "/log") for number in range(1, 6)]
    ClusterFolder(tmp_path).write_state(ClusterState("ended", 1, "long ago", "", "zk", records))
    result = run("--zookeeper", "zk:2181", "--port", "65533", "--data", str(tmp_path))
    assert result.exit_code == 2
    assert "--port 65533 is too high for 5 brokers" in result.output
