"""Streams that run while topics and partitions are added, and several streams in one session."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import NewPartitions

from compat_tests.confluent import admin_of
from compat_tests.spark.scene import Scene, make_values

pytestmark = pytest.mark.spark

WITH_TOPIC = ("topic", "partition", "offset", "value")

BOTH_WAYS = pytest.mark.parametrize("deprecated", ["false", "true"])


def add_partitions(scene: Scene, total: int) -> None:
    admin_of(scene.broker).create_partitions([NewPartitions(scene.topic, total)])[scene.topic].result(30)


@BOTH_WAYS
def test_partitions_that_come_while_a_stream_runs(scene: Scene, deprecated: str) -> None:
    """They are read from their beginning, even by a stream that began at the end."""
    scene = looking_for_topics(scene, deprecated)
    scene.create(1)
    scene.fill(make_values(5))
    query = scene.run(scene.stream(startingOffsets="latest", **{"kafka.metadata.max.age.ms": "200"}))
    query.wait_until(lambda: len(query.progress()) > 0)
    produced = scene.fill(make_values(5, start=5))
    query.wait_for(produced)
    for total in (2, 4):
        add_partitions(scene, total)
        produced |= scene.fill(make_values(5, total, start=total * 10))
        query.wait_for(produced)
    assert scene.note("rows", query.records()) == produced


@BOTH_WAYS
def test_topics_that_come_while_a_stream_runs(scene: Scene, deprecated: str) -> None:
    scene = looking_for_topics(scene, deprecated)
    produced: set[tuple[str | int | None, ...]] = set()
    options = {"subscribePattern": f"{scene.topic}-in-.*", "kafka.metadata.max.age.ms": "200"}
    scene.create(1, f"{scene.topic}-in-0")
    query = scene.run(scene.stream(**options), columns=WITH_TOPIC)
    for number in range(3):
        topic = f"{scene.topic}-in-{number}"
        if number > 0:
            scene.create(number + 1, topic)
        scene.create(1, f"{scene.topic}-out-{number}")
        scene.fill(make_values(5), f"{scene.topic}-out-{number}")
        produced |= {(topic, *record) for record in scene.fill(make_values(5, number + 1), topic)}
        query.wait_for(produced)
    assert scene.note("rows", query.records()) == produced


def looking_for_topics(scene: Scene, deprecated: str) -> Scene:
    return scene.with_conf(spark__sql__streaming__kafka__useDeprecatedOffsetFetching=deprecated)


@BOTH_WAYS
def test_topics_and_partitions_between_two_runs(scene: Scene, deprecated: str) -> None:
    scene = looking_for_topics(scene, deprecated)
    pattern = {"subscribePattern": f"{scene.topic}.*"}
    scene.create(1)
    first = {(scene.topic, *record) for record in scene.fill(make_values(5))}
    assert scene.run_to_the_end(scene.stream(**pattern), columns=WITH_TOPIC).records() == first
    add_partitions(scene, 3)
    other = scene.topic + "-other"
    scene.create(2, other)
    second = {(scene.topic, *record) for record in scene.fill(make_values(5, 3, start=5))}
    second |= {(other, *record) for record in scene.fill(make_values(5, 2), other)}
    resumed = scene.run_to_the_end(scene.stream(**pattern), columns=WITH_TOPIC).records()
    assert scene.note("rows", resumed) == second


def test_several_queries_of_one_session(scene: Scene) -> None:
    """Each has its own place in the topic, though they share executors and their cached consumers."""
    scene.create(2)
    produced = scene.fill(make_values(200, 2))
    limits = ("30", "70", "1000")
    queries = [scene.run(scene.stream(maxOffsetsPerTrigger=limit), checkpoint=limit) for limit in limits]
    late = scene.run(scene.stream(startingOffsets="latest"), checkpoint="late")
    late.wait_until(lambda: len(late.progress()) > 0)
    more = scene.fill(make_values(20, 2, start=200))
    for query in queries:
        query.wait_for(produced | more)
    late.wait_for(more)
    assert late.records() == more
    assert scene.note("rows", [query.records() for query in queries]) == [produced | more] * 3


def test_two_sources_in_one_query(scene: Scene) -> None:
    other = scene.topic + "-other"
    scene.create(2)
    scene.create(1, other)
    topic_records, other_records = scene.fill(make_values(20, 2)), scene.fill(make_values(20), other)
    frame = scene.stream().union(scene.stream(subscribe=other))
    wanted = {(scene.topic, *record) for record in topic_records} | {(other, *record) for record in other_records}
    query = scene.run_to_the_end(frame, columns=WITH_TOPIC)
    assert scene.note("rows", query.records()) == wanted
    ends = [source["endOffset"] for source in query.progress()[0]["sources"]]
    assert scene.note("ends", ends) == [{scene.topic: {"0": 20, "1": 20}}, {other: {"0": 20}}]
