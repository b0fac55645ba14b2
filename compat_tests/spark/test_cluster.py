"""The same commands on a cluster: executors receive jars and Python code, and a worker may die."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.processes import is_alive
from compat_tests.spark.cluster import SparkCluster, make_environment
from compat_tests.spark.releases import ROOT
from compat_tests.spark.scene import Record, make_values, produce_values
from compat_tests.waiting import until

pytestmark = pytest.mark.spark
PARTITIONS = 4
LIMIT = 400
JOB_SECONDS = 600
SMALL = ("--driver-memory", "512m", "--conf", "spark.executor.memory=512m")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path / "cluster") as running:
        yield running


@pytest.fixture
def filled(broker: Broker, name: str) -> set[Record]:
    create_topic(broker, name, PARTITIONS)
    return produce_values(broker, name, make_values(500, PARTITIONS))


def start_driver(arguments: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start a driver, which has the checkout on its PYTHONPATH; the cluster has not."""
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=make_environment(PYTHONPATH=str(ROOT)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=(folder / "driver.log").open("w"),
        text=True,
    )


def archive_of(cluster: SparkCluster, broker: Broker, topic: str, folder: Path, *further: str) -> list[str]:
    """Return the command that archives a topic on the cluster."""
    place = ["--path", str(folder / "archive"), "--checkpointLocation", str(folder / "checkpoint")]
    source = ["--bootstrap-server", broker.bootstrap, "--subscribe", topic]
    return ["kafkacompat", "spark", "archive", "--master", cluster.url, *SMALL, *source, *place, *further]


def await_driver(process: subprocess.Popen[str], folder: Path) -> str:
    """Wait until a driver ends, with exit code 0, and return its output."""
    try:
        said, _ = process.communicate(timeout=JOB_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, (folder / "driver.log").read_text()
    return said


def read_archived(spark: Any, folder: Path) -> list[Record]:
    from spark_integration.archive.reading import read_archive

    rows = read_archive(spark, str(folder / "archive")).selectExpr("partition", "offset", "string(value)").collect()
    return [tuple(row) for row in rows]


def test_executors_get_the_jars_and_the_code(
    cluster: SparkCluster, broker: Broker, name: str, filled: set[Record], tmp_path: Path
) -> None:
    job = ["compat_tests.spark.on_executors", cluster.url, broker.bootstrap, name]
    seen = json.loads(await_driver(start_driver(job, tmp_path), tmp_path))
    assert seen["admin"] == "JavaClass"
    expected = {(json.dumps({name: {str(part): offset}}), value) for part, offset, value in filled}
    assert {(json.dumps(json.loads(row["place"])), row["value"]) for row in seen["rows"]} == expected
    assert len(seen["rows"]) == len(filled)
    assert all("/spark_integration.zip/spark_integration/" in row["code"] for row in seen["rows"])
    used = {Path(row["cwd"]).relative_to(cluster.folder).parts[0] for row in seen["rows"]}
    assert used == {"work0", "work1"}


def test_archive_on_a_cluster(
    cluster: SparkCluster, broker: Broker, spark: Any, name: str, filled: set[Record], tmp_path: Path
) -> None:
    await_driver(start_driver(archive_of(cluster, broker, name, tmp_path), tmp_path), tmp_path)
    rows = read_archived(spark, tmp_path)
    assert sorted(rows) == sorted(filled)
    assert len(cluster.executor_logs()) == 2


def test_worker_dies_in_the_middle_of_a_job(
    cluster: SparkCluster, broker: Broker, spark: Any, name: str, filled: set[Record], tmp_path: Path
) -> None:
    progress = tmp_path / "progress.jsonl"
    further = ["--maxOffsetsPerTrigger", str(LIMIT), "--progress-json", str(progress)]
    process = start_driver(archive_of(cluster, broker, name, tmp_path, *further), tmp_path)
    until(lambda: process.poll() is not None or count_batches(progress) >= 2, timeout_seconds=JOB_SECONDS)
    assert process.poll() is None, (tmp_path / "driver.log").read_text()
    cluster.workers[0].kill()
    before = count_batches(progress)
    assert not is_alive(cluster.workers[0].process.pid)
    await_driver(process, tmp_path)
    total = len(filled) // LIMIT
    assert 2 <= before < total - 1, "the kill did not fall in the middle"
    assert count_batches(progress) >= total
    assert sorted(read_archived(spark, tmp_path)) == sorted(filled)


def count_batches(progress: Path) -> int:
    """Return the number of micro-batches with records in a query's progress."""
    lines = progress.read_text().splitlines() if progress.exists() else []
    return sum(line.endswith("}") for line in lines)
