"""`kafkacompat metadata` on log directories, up to where ZooKeeper would be called."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli import main
from kafkacompat.metadata.sqlite_store import FILE_NAME, SqliteStore
from kafkacompat.metadata.store import ABSENT, StoreChange
from kafkacompat.storage.files.operating_system import OsFiles
from tests.fakes.disk import ImmediateDisk
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.metadata.test_export_file import VALUES

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
ZOOKEEPER = "127.0.0.1:1/kafka"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The log directory of a single node."""
    directory = tmp_path / "data"
    write_store(directory, VALUES)
    (directory / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={CLUSTER}\n")
    return directory


@pytest.fixture
def exported(data: Path, tmp_path: Path) -> Path:
    assert run("export", tmp_path / "file", "--data", data).exit_code == 0
    return tmp_path / "file"


def write_store(directory: Path, values: dict[str, bytes]) -> None:
    store = SqliteStore(str(directory), ImmediateDisk())
    outcome(store.compare_and_set([StoreChange(key, ABSENT, value) for key, value in values.items()]))
    outcome(store.close())


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["metadata", *map(str, arguments)])


def assert_refused(result: Result, code: int, reason: str) -> None:
    assert (result.exit_code, result.stdout) == (code, "")
    assert reason in result.stderr
    assert result.stderr.startswith("kafkacompat: ") and result.stderr.count("\n") == 1


def test_the_file_has_every_key_and_is_its_owners(exported: Path) -> None:
    rows = [json.loads(line) for line in exported.read_text().splitlines()]
    assert {row["key"]: row["value"].encode() for row in rows[1:-1]} == VALUES
    assert exported.stat().st_mode & 0o777 == 0o600


def test_standard_output_has_the_same(data: Path, exported: Path) -> None:
    result = run("export", "-", "--data", data)
    assert (result.exit_code, result.stdout) == (0, exported.read_text())


def test_an_existing_file_is_kept(data: Path, exported: Path) -> None:
    before = exported.read_text()
    assert_refused(run("export", exported, "--data", data), 1, "exists")
    assert exported.read_text() == before


def test_a_running_broker_is_refused(data: Path, exported: Path) -> None:
    lock = OsFiles().lock(str(data / ".lock"))
    try:
        results = [
            run("export", data / "other", "--data", data),
            run("import", exported, "--zookeeper", ZOOKEEPER, "--data", data),
        ]
    finally:
        lock.release()
    for result in results:
        assert_refused(result, 1, "is in use by a broker: stop it first")
    assert not (data / "other").exists()


@pytest.mark.parametrize("command", ["export", "import"])
def test_a_directory_that_is_missing_is_not_created(exported: Path, tmp_path: Path, command: str) -> None:
    missing = tmp_path / "missing"
    more = ["--zookeeper", ZOOKEEPER] if command == "import" else []
    file = exported if command == "import" else tmp_path / "new"
    assert_refused(run(command, file, "--data", missing, *more), 1, "is no directory")
    assert not missing.exists()


def test_a_directory_without_metadata_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert_refused(run("export", tmp_path / "file", "--data", tmp_path / "empty"), 1, f"has no {FILE_NAME}")
    assert FILE_NAME not in os.listdir(tmp_path / "empty")


def test_directories_of_another_cluster_are_refused(data: Path, exported: Path) -> None:
    (data / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
    for result in (
        run("export", data / "other", "--data", data),
        run("import", exported, "--zookeeper", ZOOKEEPER, "--data", data),
    ):
        assert_refused(result, 1, "belong to the cluster AAAA")


def test_a_damaged_store_is_refused(data: Path, tmp_path: Path) -> None:
    (data / FILE_NAME).write_bytes(b"no database" * 1000)
    assert_refused(run("export", tmp_path / "file", "--data", data), 1, "cannot be used")
    assert not (tmp_path / "file").exists()


def test_an_export_that_is_older_than_the_metadata_is_refused(data: Path, exported: Path) -> None:
    write_store(data, {"/consumers/g/offsets/t/1": b"7"})
    assert_refused(run("import", exported, "--zookeeper", ZOOKEEPER, "--data", data), 1, "have changed since")
    assert (data / FILE_NAME).exists()


def test_a_damaged_file_is_refused(exported: Path) -> None:
    exported.write_text(exported.read_text()[:-20])
    assert_refused(run("import", exported, "--zookeeper", ZOOKEEPER), 2, "line 6 is no JSON object")


@pytest.mark.parametrize("connect", ["", "host:port/kafka", "one:2181/kafka,two:2181"])
def test_an_address_that_leads_nowhere_is_refused(exported: Path, connect: str) -> None:
    assert_refused(run("import", exported, "--zookeeper", connect), 2, "zookeeper.connect=")


def test_an_import_renames_the_metadata(data: Path, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[tuple[str, dict[str, bytes]]] = []

    def run_import(connect: str, values: dict[str, bytes]) -> int:
        imported.append((connect, values))
        return len(values)

    monkeypatch.setattr("kafkacompat.cli.metadata_import._import_values", run_import)
    result = run("import", exported, "--zookeeper", ZOOKEEPER, "--data", data)
    assert result.exit_code == 0
    assert result.stdout == f"Imported 5 keys; start the broker with zookeeper.connect={ZOOKEEPER}\n"
    assert imported == [(ZOOKEEPER, VALUES)]
    names = os.listdir(data)
    assert FILE_NAME not in names and f"{FILE_NAME}.moved-to-zookeeper" in names
