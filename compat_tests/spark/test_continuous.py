"""Continuous processing: tasks that read without end, and epochs instead of micro-batches."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions

from compat_tests.confluent import admin_of
from compat_tests.spark.scene import Record, Scene, make_values, read_stored
from compat_tests.waiting import until

pytestmark = pytest.mark.spark


def start_copy(scene: Scene, target: str) -> Any:
    """Copy the scene's topic to another, in epochs of a second."""
    writer = scene.stream().selectExpr("value").writeStream.format("kafka").outputMode("append")
    options = {
        "kafka.bootstrap.servers": scene.broker.bootstrap,
        "topic": target,
        "checkpointLocation": str(scene.folder / "continuous"),
    }
    return writer.options(**options).trigger(continuous="1 second").start()


def count_copied(scene: Scene, target: str) -> Counter[str | None]:
    """Count the values with a plain consumer, since the query's tasks leave Spark no core."""
    return Counter(value for _, _, value in read_stored(scene.broker, target))


def copy_until(scene: Scene, query: Any, target: str, wanted: set[Record]) -> None:
    """Wait until all are copied, and an epoch that ends after them is committed."""
    ends = Counter(str(partition) for partition, _, _ in wanted)
    until(lambda: query.exception() is not None or read_committed(scene).get(scene.topic) == ends, timeout_seconds=120)
    assert query.exception() is None, query.exception()
    assert count_copied(scene, target).keys() == {value for _, _, value in wanted}


def read_committed(scene: Scene) -> dict[str, dict[str, int]]:
    """Return the offsets of the last committed epoch, at which the next run begins."""
    folder = scene.folder / "continuous"
    last = max((int(path.name) for path in (folder / "commits").glob("[0-9]*")), default=None)
    if last is None:
        return {}
    offsets: dict[str, dict[str, int]] = json.loads((folder / "offsets" / str(last)).read_text().splitlines()[-1])
    return offsets


def test_a_topic_is_copied_continuously(scene: Scene) -> None:
    """The query continues from the last committed epoch."""
    target = scene.topic + "-target"
    scene.create(2)
    scene.create(1, target)
    wanted = scene.fill(make_values(100, 2))
    for first in (100, 200):
        query = start_copy(scene, target)
        copy_until(scene, query, target, wanted)
        wanted |= scene.fill(make_values(100, 2, first))
        copy_until(scene, query, target, wanted)
        query.stop()
    assert scene.note("values", count_copied(scene, target)) == {value: 1 for _, _, value in wanted}


def test_a_partition_that_comes(scene: Scene) -> None:
    """The query plans again by itself, from the last epoch; it needs as many cores as there are partitions."""
    target = scene.topic + "-target"
    scene.create(1)
    scene.create(1, target)
    wanted = scene.fill(make_values(50))
    query = start_copy(scene, target)
    copy_until(scene, query, target, wanted)
    admin_of(scene.broker).create_partitions([NewPartitions(scene.topic, 2)])[scene.topic].result(30)
    wanted |= scene.fill({0: make_values(50, start=50)[0], 1: make_values(30, 2)[1]})
    copy_until(scene, query, target, wanted)
    query.stop()
    scene.note("values", set(count_copied(scene, target)))
