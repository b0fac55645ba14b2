"""HDFS below `kafkacompat spark archive` and `replay`: an archiving run is killed; the replayed topic is compared."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.frameworks.programme import FOLDER, start_java
from compat_tests.spark.copies import Run, assert_copied, kill_in_the_middle, make_various_records, produce_records

pytestmark = pytest.mark.frameworks

POM = FOLDER / "hdfs" / "pom.xml"
SOURCE = FOLDER / "java" / "HdfsServer.java"
SEED = 5
PARTITIONS = 2
RECORDS = 1000
OFFSETS_PER_BATCH = 100
BATCHES = RECORDS // OFFSETS_PER_BATCH
START_SECONDS = 240
SPARK = ("--driver-memory", "512m", "--conf", "spark.hadoop.dfs.replication=1")


class Hdfs(NamedTuple):
    """The URI of a name node, and the local folder of its data node."""

    uri: str
    folder: Path

    def count_blocks(self) -> int:
        """Return the number of blocks; every file that is not empty has at least one."""
        return sum(1 for path in self.folder.rglob("finalized/**/blk_*") if path.suffix != ".meta")


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[Hdfs]:
    """HDFS with one data node."""
    folder = tmp_path / "hdfs"
    with start_java("HdfsServer", [str(folder)], tmp_path / "log", source=SOURCE, pom=POM) as server:
        served = server.until(lambda: re.search(r"serves (\S+)", server.log), START_SECONDS)
        assert served is not None
        yield Hdfs(served[1], folder)


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
