"""HDFS below `kafkacompat spark archive` and `replay`: an archiving run is killed; the replayed topic is compared."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.frameworks.hadoop import Hdfs
from compat_tests.frameworks.programme import JVM
from compat_tests.spark.copies import Run, assert_copied, kill_in_the_middle, make_various_records, produce_records

pytestmark = pytest.mark.frameworks

SEED = 5
PARTITIONS = 2
RECORDS = 1000
OFFSETS_PER_BATCH = 200
BATCHES = RECORDS // OFFSETS_PER_BATCH
SPARK = (
    *("--driver-memory", "512m"),
    *("--conf", "spark.hadoop.dfs.replication=1"),
    *("--conf", f"spark.driver.extraJavaOptions={' '.join(JVM)}"),
)


def test_archive_and_replay(broker: Broker, name: str, hdfs: Hdfs, tmp_path: Path) -> None:
    create_topic(broker, name, PARTITIONS)
    produce_records(broker, name, make_various_records(random.Random(SEED), RECORDS), PARTITIONS)
    progress = tmp_path / "progress"
    bootstrap = ("--bootstrap-server", broker.bootstrap)
    path = ("--path", f"{hdfs.uri}/archive")
    checkpoint = ("--checkpointLocation", f"{hdfs.uri}/checkpoint")
    batches = ("--maxOffsetsPerTrigger", str(OFFSETS_PER_BATCH), "--progress-json", str(progress))
    archive = ["archive", *bootstrap, "--subscribe", name, *path, *checkpoint, *batches, *SPARK]
    kill_in_the_middle(tmp_path / "killed", archive, lambda: count_lines(progress), BATCHES // 2, BATCHES)
    run_to_the_end(tmp_path / "archive-run", archive)
    assert hdfs.count_blocks() > BATCHES
    run_to_the_end(tmp_path / "replay-run", ["replay", *bootstrap, *path, "--prefix", "again.", *SPARK])
    assert_copied(broker, name, broker, f"again.{name}", cluster=False)


def count_lines(file: Path) -> int:
    """The number of lines of a file; 0 if there is none."""
    return file.read_text().count("\n") if file.exists() else 0


def run_to_the_end(folder: Path, arguments: list[str]) -> None:
    """Run a pipeline until it ends; AssertionError if it fails."""
    run = Run(folder, *arguments)
    assert run.wait() == 0, run.stderr
