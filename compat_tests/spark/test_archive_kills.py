"""Archives whose command is killed with its JVM at random moments hold each record once, even with a lost checkpoint.

``COMPAT_TESTS_KILLS=20`` kills that often.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import NewPartitions

from compat_tests.brokers import ROOT, Broker
from compat_tests.confluent import admin_of, create_topic
from compat_tests.spark.archives import produce_all_kinds, read_topics
from compat_tests.spark.copies import kill_count
from compat_tests.spark.releases import table_formats
from compat_tests.waiting import pause, until
from spark_integration.state.manifest import COMMITS, ArchiveCommit, parse_commit

pytestmark = pytest.mark.spark

BATCH = 60
BATCHES_BETWEEN = 8
LIMIT_SECONDS = 400


class Runs:
    """Runs the command over topics of a pattern, into one archive."""

    def __init__(self, broker: Broker, pattern: str, folder: Path, form: str) -> None:
        self.folder, self.form = folder, form
        self.path, self.checkpoint = folder / "archive", folder / "checkpoint"
        self._command = [sys.executable, "-m", "kafkacompat", "spark", "archive", "--master", "local[2]"]
        self._command += [
            "--bootstrap-server",
            broker.bootstrap,
            "--subscribePattern",
            pattern,
            "--driver-memory",
            "512m",
        ]
        self._command += ["--path", str(self.path), "--checkpointLocation", str(self.checkpoint), "--format", form]

    @contextmanager
    def running(self, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start the command, and kill it after the block if it still runs."""
        with (self.folder / "output").open("ab") as output:
            process = subprocess.Popen(
                [*self._command, *options], cwd=ROOT, stdout=output, stderr=output, start_new_session=True
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def output(self) -> str:
        return (self.folder / "output").read_text()[-3000:]

    def number(self) -> int:
        """Return the number of the last commit; 0 before the first."""
        return max((int(file.stem) for file in (self.path / COMMITS).glob("[0-9]*.json")), default=0)

    def commits(self) -> list[ArchiveCommit]:
        """Read the manifest's commits, at least the last hundred."""
        files = sorted((self.path / COMMITS).glob("*.json"))
        return [parse_commit(file.read_text()) for file in files]

    def archived(self) -> set[tuple[object, ...]]:
        """Read the archive in a session of its own; AssertionError if it holds a record twice."""
        file = self.folder / "archived"
        command = [sys.executable, "-m", "compat_tests.spark.archive_reader", self.form, str(self.path), str(file)]
        subprocess.run(command, cwd=ROOT, check=True, timeout=LIMIT_SECONDS, capture_output=True)
        records: set[tuple[object, ...]] = pickle.loads(file.read_bytes())
        return records


def kill_in_the_middle(runs: Runs, chance: random.Random) -> None:
    """Kill the command at a random moment, once it has committed more batches."""
    wanted = runs.number() + chance.randint(1, 3)
    with runs.running("--option", f"maxOffsetsPerTrigger={BATCH}", "--mergeFiles", "6") as process:
        until(lambda: process.poll() is not None or runs.number() >= wanted, timeout_seconds=LIMIT_SECONDS)
        pause(chance.uniform(0, 1.5))
        assert process.poll() is None, f"it ended before it was killed: {runs.output()}"
        os.killpg(process.pid, signal.SIGKILL)


def finish_runs(runs: Runs) -> None:
    with runs.running("--mergeFiles", "6") as process:
        assert process.wait(LIMIT_SECONDS) == 0, runs.output()


@pytest.mark.parametrize("form", ["parquet", *table_formats()])
def test_killed_at_random_moments(broker: Broker, name: str, tmp_path: Path, form: str) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    first, second = f"{name}-{form}-a", f"{name}-{form}-b"
    runs = Runs(broker, f"{name}-{form}-.*", tmp_path, form)
    create_topic(broker, first, 2)
    produce_all_kinds(broker, first, kill_count() * BATCHES_BETWEEN * BATCH // 2, 2)
    for number in range(kill_count()):
        kill_in_the_middle(runs, chance)
        if number == 0:
            create_topic(broker, second, 1)
            admin_of(broker).create_partitions([NewPartitions(first, 3)])[first].result(30)
            produce_all_kinds(broker, second, BATCHES_BETWEEN * BATCH, 1)
            produce_all_kinds(broker, first, 50, 3, first=10_000)
        if number == 1:
            shutil.rmtree(runs.checkpoint)
    stored = read_topics(broker, [first, second])
    done = sum(span.records for commit in runs.commits() if commit.kind == "batch" for span in commit.ranges)
    assert 0 < done < len(stored), "the kills did not fall in the middle"
    finish_runs(runs)
    assert runs.archived() == {tuple(record) for record in stored}
