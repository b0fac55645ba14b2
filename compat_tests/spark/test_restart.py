"""Queries that end in the middle, by an error, by SIGKILL or with the broker, and the next run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import ROOT
from compat_tests.conftest import MakeBroker
from compat_tests.spark.driver import LIMIT, to_parquet
from compat_tests.spark.scene import Query, Record, Scene, collect_records, collect_rows, make_values
from compat_tests.waiting import until

pytestmark = pytest.mark.spark


class FailsInBatchError(Exception):
    """The failure of a test's sink."""


def fail_in(wanted: int) -> Callable[[int], None]:
    def check(number: int) -> None:
        if number == wanted:
            raise FailsInBatchError

    return check


def numbers_in(folder: Path) -> set[int]:
    """Return the numbers of the micro-batches in a log of the checkpoint."""
    return {int(path.name) for path in folder.iterdir() if path.name.isdigit()} if folder.exists() else set()


def test_a_planned_micro_batch_keeps_its_offsets(scene: Scene) -> None:
    """Its offsets are in the checkpoint; new records and another limit count from the next batch on."""
    scene.create(2)
    produced = scene.fill(make_values(20, 2))
    query = scene.run(scene.stream(maxOffsetsPerTrigger="10"), on_batch=fail_in(2), availableNow=True)
    with pytest.raises(FailsInBatchError):
        query.finish()
    assert numbers_in(query.checkpoint / "offsets") == {0, 1, 2}
    assert numbers_in(query.checkpoint / "commits") == {0, 1}
    more = scene.fill(make_values(20, 2, start=20))
    resumed = scene.run_to_the_end(scene.stream(maxOffsetsPerTrigger="30"))
    assert resumed.batches.keys() == {2, 3, 4}
    batches = {number: set(batch) for number, batch in (query.batches | resumed.batches).items()}
    assert scene.note("batches", batches)[2] == {record for record in produced if 10 <= record[1] < 15}
    assert query.records() | resumed.records() == produced | more
    assert not query.records() & resumed.records()


def test_a_sink_that_is_no_part_of_the_checkpoint_gets_a_batch_twice(scene: Scene) -> None:
    """Records that were written before the commit are written again: Spark's sink promises at least once."""
    target = scene.topic + "-target"
    scene.create(1)
    scene.create(1, target)
    scene.fill(make_values(30))
    for _ in range(2):
        copy_and_fail_once(scene, target)
    copied = [record[2] for record in sorted(collect_rows(scene.batch(subscribe=target)))]
    assert scene.note("copied", copied) == [f"0/{number}" for number in [*range(20), *range(10, 30)]]


def copy_and_fail_once(scene: Scene, target: str) -> None:
    """Copy in micro-batches of ten; the first run ends between the second one's write and its commit."""
    again = (scene.folder / "failed").exists()

    def write(frame: Any, number: int) -> None:
        options = {"kafka.bootstrap.servers": scene.broker.bootstrap, "topic": target}
        frame.coalesce(1).sort("offset").select("value").write.format("kafka").options(**options).save()
        if number == 1 and not again:
            (scene.folder / "failed").touch()
            raise FailsInBatchError

    writer = scene.stream(maxOffsetsPerTrigger="10").writeStream.foreachBatch(write)
    checkpoint = str(scene.folder / "copying")
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    if again:
        assert query.awaitTermination(120)
    else:
        until(lambda: query.exception() is not None, timeout_seconds=120)


def test_a_driver_that_is_killed(scene: Scene) -> None:
    """Twice between the first micro-batch and the last, then resumed here: every record once, by the sink's own log."""
    scene.create(2)
    produced = scene.fill(make_values(4000, 2))
    commits = scene.folder / "parquet-checkpoint" / "commits"
    for least in (5, 10):
        kill_behind(scene, commits, least)
    done = len(numbers_in(commits))
    assert 10 <= done < len(produced) / LIMIT, "the kill did not fall in the middle"
    query = to_parquet(scene.stream(), scene.folder).trigger(availableNow=True).start()
    assert query.awaitTermination(240)
    parquet = scene.session.read.parquet(str(scene.folder / "parquet"))
    assert scene.note("rows", collect_records(parquet)) == produced


def kill_behind(scene: Scene, commits: Path, least: int) -> None:
    """Run a driver of its own, and kill it with its JVM once it has committed this many micro-batches."""
    command = [
        sys.executable,
        "-m",
        "compat_tests.spark.driver",
        scene.broker.bootstrap,
        scene.topic,
        str(scene.folder),
    ]
    with (scene.folder / "driver-output").open("ab") as output:
        driver = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, start_new_session=True)
    try:
        until(lambda: driver.poll() is not None or len(numbers_in(commits)) >= least, timeout_seconds=180)
        assert driver.poll() is None, (scene.folder / "driver-output").read_text()[-2000:]
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


@pytest.mark.parametrize("way", ["stopped", "killed"])
def test_the_broker_restarts_under_a_stream(scene: Scene, make_broker: MakeBroker, way: str) -> None:
    """The query continues by itself, with nothing lost and nothing twice."""
    scene = scene.on(make_broker())
    scene.create(2)
    produced = scene.fill(make_values(100, 2))
    query = scene.run(scene.stream(maxOffsetsPerTrigger="30"))
    query.wait_until(lambda: len(query.batches) >= 2)
    restart_broker(scene, way)
    assert len(query.records()) < len(produced), "the restart did not fall in the middle"
    produced |= scene.fill(make_values(100, 2, start=100))
    query.wait_for(produced)
    assert scene.note("rows", query.records()) == produced
    still_idle(query)
    restart_broker(scene, way)
    produced |= scene.fill(make_values(10, 2, start=200))
    query.wait_for(produced)
    assert scene.note("rows after the second restart", query.records()) == produced


def restart_broker(scene: Scene, way: str) -> None:
    if way == "stopped":
        scene.broker.stop()
    else:
        scene.broker.kill()
    scene.broker.start()


def still_idle(query: Query) -> None:
    """The stream looks for new records, and there are none."""
    assert query.query.isActive
    assert not query.query.status["isDataAvailable"]


def test_the_broker_restarts_under_a_batch(scene: Scene, make_broker: MakeBroker) -> None:
    """Between planning and reading; the cached consumers have lost their connections."""
    scene = scene.on(make_broker())
    scene.create(2)
    produced: set[Record] = set()
    for start in (0, 10):
        produced |= scene.fill(make_values(10, 2, start))
        planned = scene.batch().selectExpr("partition", "offset", "string(value) as value").rdd
        restart_broker(scene, "killed")
        assert scene.note(f"rows {start}", {tuple(row) for row in planned.collect()}) == produced
