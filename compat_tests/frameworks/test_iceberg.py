"""Iceberg's sink for Kafka Connect: records go into a table in HDFS, exactly once; the worker is killed once."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import fastavro
import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.frameworks.connect_worker import STRING, NewWorker
from compat_tests.frameworks.hadoop import Hdfs
from compat_tests.frameworks.interruption import STOPPED, split, write_before
from compat_tests.frameworks.programme import FOLDER, START_SECONDS, serves_transactions
from compat_tests.frameworks.reading import count_committed
from spark_integration.runtime.maven import jar_folder

pytestmark = pytest.mark.frameworks

POM = FOLDER / "iceberg" / "pom.xml"
TABLE = "database.lines"
PARTITIONS = 3
RECORDS = 6000
RECORDS_PER_WRITE = 50
DELETED = 2


def test_table_in_hdfs(broker: Broker, name: str, hdfs: Hdfs, new_worker: NewWorker, tmp_path: Path) -> None:
    if not serves_transactions(broker):
        pytest.skip("the broker does not serve transactions yet")
    create_topic(broker, name, PARTITIONS)
    create_topic(broker, f"{name}-control")
    values = [json.dumps({"number": number, "word": f"word{number % 97}"}) for number in range(RECORDS)]
    early, late = values[: RECORDS * 2 // 3], values[RECORDS * 2 // 3 :]
    chunks = split(early, RECORDS_PER_WRITE)
    table = Table(hdfs, f"/warehouse/{TABLE.replace('.', '/')}")
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "iceberg").symlink_to(jar_folder(POM))

    def write(chunk: Sequence[str]) -> None:
        produce(broker, name, list(chunk))

    first = new_worker(plugins)
    first.put(name, make_config(name, hdfs))
    write(next(chunks))
    first.programme.until(lambda: table.count_records() > 0, START_SECONDS)
    first.programme.until(write_before(lambda: table.count_records() >= RECORDS // 3, chunks, write))
    first.programme.kill()
    assert len(table.read_rows()) == table.count_records() < RECORDS
    for chunk in (*chunks, late):
        write(chunk)
    second = new_worker(plugins)
    second.programme.until(lambda: table.count_records() >= RECORDS, START_SECONDS)
    second.programme.until(lambda: count_committed(broker, f"connect-{name}", name, PARTITIONS) == RECORDS)
    assert second.programme.stop() in STOPPED, second.programme.log
    assert sorted(table.read_rows(), key=lambda row: row["number"]) == [json.loads(value) for value in values]


def make_config(name: str, hdfs: Hdfs) -> dict[str, str]:
    """The settings of a sink of two tasks, which commits to its table every second and creates it."""
    return {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": "2",
        "topics": name,
        "key.converter": STRING,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "iceberg.tables": TABLE,
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.auto-create-props.write.format.default": "avro",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": f"{hdfs.uri}/warehouse",
        "iceberg.hadoop.dfs.replication": "1",
        "iceberg.control.topic": f"{name}-control",
        "iceberg.control.commit.interval-ms": "1000",
        # A task that joins after the first commit began has no part in it, and the coordinator waits for it in vain.
        "iceberg.control.commit.timeout-ms": "5000",
    }


class Table:
    """A table of Iceberg in HDFS, read by its specification: metadata in JSON, lists of files and data in Avro."""

    def __init__(self, hdfs: Hdfs, path: str) -> None:
        self._hdfs = hdfs
        self._path = path

    def count_records(self) -> int:
        """Return the number of records by the newest snapshot; 0 before the first."""
        snapshot = self._find_snapshot()
        return int(snapshot["summary"]["total-records"]) if snapshot else 0

    def read_rows(self) -> list[dict[str, Any]]:
        """Return the rows of the newest snapshot."""
        snapshot = self._find_snapshot()
        assert snapshot is not None
        manifests = self._read_avro(snapshot["manifest-list"])
        entries = [entry for manifest in manifests for entry in self._read_avro(manifest["manifest_path"])]
        files = [entry["data_file"]["file_path"] for entry in entries if entry["status"] != DELETED]
        return [row for file in files for row in self._read_avro(file)]

    def _find_snapshot(self) -> dict[str, Any] | None:
        try:
            version = int(self._hdfs.read(f"{self._path}/metadata/version-hint.text"))
            metadata = json.loads(self._hdfs.read(f"{self._path}/metadata/v{version}.metadata.json"))
        except HTTPError as problem:
            assert problem.code == HTTPStatus.NOT_FOUND, problem
            return None
        newest = metadata.get("current-snapshot-id")
        snapshots = metadata.get("snapshots", [])
        return next((snapshot for snapshot in snapshots if snapshot["snapshot-id"] == newest), None)

    def _read_avro(self, path: str) -> Iterator[Any]:
        yield from fastavro.reader(io.BytesIO(self._hdfs.read(path)))
