"""The tables, the JSON and the exit codes of `kafkacompat cluster status`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli import main
from kafkacompat.cli.cluster import status as status_module
from kafkacompat.cli.cluster.folder import ClusterFolder, ClusterState, ProcessRecord
from kafkacompat.cli.cluster.status import MOST_ROWS
from kafkacompat.cli.command_config import ClientSecurity
from kafkacompat.security.sasl.client import ClientLogin
from tests.kafkacompat.cli.cluster.fake_cluster import FakeCluster

SERVERS = "127.0.0.1:9092"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A sound cluster with one partition."""
    fake = FakeCluster()
    fake.partitions["orders", 0] = (1, [1, 2, 3], [1, 2, 3])
    fake.ends = {(node_id, "orders", 0): 100 for node_id in (1, 2, 3)}
    monkeypatch.setattr(status_module, "BlockingConnection", fake.connect)
    return fake


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["cluster", "status", *arguments])


def test_a_sound_cluster(cluster: FakeCluster) -> None:
    result = run("--bootstrap-server", SERVERS)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "Cluster the-cluster, controller 1"
    (row,) = (line.split() for line in lines if "127.0.0.1:9092" in line)
    assert row == ["1", "127.0.0.1:9092", "live,", "controller", "1", "1", "1", "0", "2000"]
    assert lines[-1] == "1 partitions: 0 offline, 0 under-replicated"
    assert "Under-replicated" not in result.output


def test_partitions_that_need_attention_end_with_1(cluster: FakeCluster) -> None:
    cluster.partitions["orders", 0] = (1, [1, 2, 3], [1, 2])
    cluster.ends[3, "orders", 0] = 58
    result = run("--bootstrap-server", SERVERS)
    assert result.exit_code == 1
    assert "Under-replicated partitions" in result.output
    assert "2: 0, 3: 42" in result.output
    cluster.partitions["orders", 0] = (-1, [1], [1])
    result = run("--bootstrap-server", SERVERS)
    assert result.exit_code == 1
    assert "Offline partitions" in result.output and "1: unknown" in result.output


def test_the_file_of_command_config_says_how_to_connect(cluster: FakeCluster, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f'sasl.jaas.config={module} required username="a" password="hush";'
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{jaas}\n")
    assert run("--bootstrap-server", SERVERS, "--command-config", str(path)).exit_code == 0
    assert cluster.security == ClientSecurity(login=ClientLogin("PLAIN", "a", "hush"))
    path.write_text(f"security.protocol=SASL_PLAINTEXT\n{jaas}\n")
    result = run("--bootstrap-server", SERVERS, "--command-config", str(path))
    assert result.exit_code == 2 and "hush" not in result.output
    assert f"--command-config {path}: the SASL mechanism GSSAPI is not served" in result.output


def test_a_long_table_says_what_it_leaves_out(cluster: FakeCluster) -> None:
    for number in range(MOST_ROWS + 7):
        cluster.partitions["many", number] = (-1, [1], [])
    assert "and 7 more: --json has all" in run("--bootstrap-server", SERVERS).output


def test_json_has_everything(cluster: FakeCluster) -> None:
    cluster.partitions["orders", 1] = (2, [2, 3], [2])
    cluster.ends[2, "orders", 1] = 9
    result = run("--bootstrap-server", SERVERS, "--json")
    assert result.exit_code == 1
    described = json.loads(result.output)
    assert (described["controller"], described["under_replicated_partitions"]) == (1, 1)
    assert described["brokers"][2] == {
        "node_id": 3,
        "host": "127.0.0.1",
        "port": 9094,
        "rack": None,
        "state": "live",
        "is_controller": False,
        "leaders": 0,
        "replicas": 2,
        "in_sync": 1,
        "lag": None,
        "size_bytes": 6000,
        "failed_log_dirs": [],
        "problem": "",
    }
    assert described["partitions"][1] == {
        "topic": "orders",
        "partition": 1,
        "leader": 2,
        "leader_epoch": 4,
        "replicas": [2, 3],
        "isr": [2],
        "adding": [],
        "lags": {"3": None},
        "is_offline": False,
        "is_under_replicated": True,
    }
    assert described["processes"] == []


def test_names_change_nothing_on_a_terminal(cluster: FakeCluster) -> None:
    cluster.partitions["[red]\x1b[31m", 0] = (-1, [1], [])
    output = run("--bootstrap-server", SERVERS).output
    assert "[red]\\x1b[31m" in output and "\x1b" not in output


def write_state(folder: Path, *records: ProcessRecord) -> None:
    ClusterFolder(folder).write_state(ClusterState("ready", 1, "then", "", "zk", list(records)))


def test_the_cluster_of_a_folder_is_found_with_its_processes(cluster: FakeCluster, tmp_path: Path) -> None:
    write_state(
        tmp_path,
        ProcessRecord("zookeeper", "ready", "/z.log", address="127.0.0.1:2181"),
        ProcessRecord("broker-1", "ready", "/1.log", address="127.0.0.1:9092"),
        ProcessRecord("broker-2", "given up", "/2.log", exit_code=1, sentence="the disk is full"),
    )
    result = run("--data", str(tmp_path))
    assert result.exit_code == 0
    assert "the disk is full" in result.output and "/1.log" not in result.output
    described = json.loads(run("--data", str(tmp_path), "--json").output)
    assert [process["stage"] for process in described["processes"]] == ["ready", "ready", "given up"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--bootstrap-server", "localhost"], "'localhost' is not of the form HOST:PORT"),
        (["--bootstrap-server", "localhost:99999"], "'localhost:99999' is not of the form HOST:PORT"),
        (["--bootstrap-server", "127.0.0.1:9099"], "no broker answers: 127.0.0.1:9099: Connection refused"),
        (["--data", "absent"], "absent holds no cluster: name its folder with --data, or a broker"),
        (["--data", "starting"], "no broker of the cluster in starting was ready yet"),
    ],
)
def test_a_cluster_that_cannot_be_read_ends_with_2_in_one_sentence(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "starting").mkdir()
    write_state(tmp_path / "starting", ProcessRecord("zookeeper", "ready", "/z.log", address="127.0.0.1:2181"))
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.output.startswith("kafkacompat: ") and words in result.output
    assert len(result.output.splitlines()) == 1
