"""Servers that more than one test of the frameworks starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.frameworks.connect_worker import NewWorker, Worker
from compat_tests.frameworks.hadoop import Hdfs
from compat_tests.frameworks.programme import FOLDER, START_SECONDS, start_java


@pytest.fixture
def new_worker(broker: Broker, name: str, tmp_path: Path) -> Iterator[NewWorker]:
    """Start a Connect worker of the test's group; none is left running."""
    workers: list[Worker] = []

    def start(plugins: Path | None = None, source: Path | None = None) -> Worker:
        workers.append(Worker(broker, name, tmp_path / f"worker{len(workers)}", plugins, source))
        workers[-1].programme.until(workers[-1].serves, START_SECONDS)
        return workers[-1]

    yield start
    for worker in workers:
        worker.programme.kill()


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[Hdfs]:
    """HDFS with one data node."""
    folder = tmp_path / "hdfs"
    pom, source = FOLDER / "hdfs" / "pom.xml", FOLDER / "java" / "HdfsServer.java"
    with start_java("HdfsServer", [str(folder)], tmp_path / "hdfs-log", source=source, pom=pom) as server:
        served = server.until(lambda: re.search(r"serves (\S+) (\S+)\n", server.log), START_SECONDS)
        assert served is not None
        yield Hdfs(served[1], served[2], folder)
