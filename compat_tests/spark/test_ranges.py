"""The records that a batch reads: by offsets of each partition, by topics and partitions, and by number of tasks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compat_tests.spark.scene import IS_SPARK_4, Record, Scene, catch_failure, collect_records, make_values

pytestmark = pytest.mark.spark

WITH_TOPIC = ("topic", "partition", "offset", "value")
WITH_TASK = ("task", "partition", "offset", "value")


def test_offsets_of_each_partition(scene: Scene) -> None:
    """-2 is the beginning and -1 the end; a range may be empty."""
    scene.create(4)
    produced = scene.fill(make_values(10, 4))
    starts = json.dumps({scene.topic: {"0": 3, "1": -2, "2": 10, "3": -2}})
    ends = json.dumps({scene.topic: {"0": 7, "1": 4, "2": -1, "3": -1}})
    records = scene.note("rows", collect_records(scene.batch(startingOffsets=starts, endingOffsets=ends)))
    wanted = {0: range(3, 7), 1: range(4), 3: range(10)}
    assert records == {record for record in produced if record[1] in wanted.get(record[0], ())}


def test_offsets_must_name_every_partition(scene: Scene) -> None:
    scene.create(2)
    frame = scene.batch(startingOffsets=json.dumps({scene.topic: {"0": 0}}))
    refused = (
        "KafkaIllegalStateException KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED" if IS_SPARK_4 else "AssertionError"
    )
    assert scene.note("refusal", catch_failure(frame.collect))[-1] == refused


def test_a_batch_does_not_begin_at_the_end(scene: Scene) -> None:
    refused = catch_failure(lambda: scene.batch(startingOffsets="latest"))
    assert scene.note("refusal", refused) == ["IllegalArgumentException"]


def test_offsets_after_the_end(scene: Scene) -> None:
    scene.create()
    scene.fill(make_values(5))
    ends = json.dumps({scene.topic: {"0": 50}})
    frame = scene.batch(endingOffsets=ends, **{"kafkaConsumer.pollTimeoutMs": "10000"})
    assert scene.note("refusal", catch_failure(frame.collect))[-1] == "OffsetOutOfRangeException"


def test_assign(scene: Scene) -> None:
    """Exactly the named partitions of two topics."""
    other = scene.topic + "-other"
    scene.create(3)
    scene.create(2, other)
    topic_records, other_records = scene.fill(make_values(5, 3)), scene.fill(make_values(5, 2), other)
    assigned = json.dumps({scene.topic: [0, 2], other: [1]})
    records = scene.note("rows", collect_records(scene.batch(assign=assigned), WITH_TOPIC))
    wanted = {(scene.topic, *record) for record in topic_records if record[0] != 1}
    assert records == wanted | {(other, *record) for record in other_records if record[0] == 1}


@pytest.mark.parametrize("way", ["subscribe", "subscribePattern"])
def test_several_topics(scene: Scene, way: str) -> None:
    topics = [f"{scene.topic}-{number}" for number in range(4)]
    produced: set[Any] = set()
    for topic in topics:
        scene.create(2, topic)
        produced |= {(topic, *record) for record in scene.fill(make_values(5, 2), topic) if topic != topics[3]}
    chosen = {"subscribe": ",".join(topics[:3]), "subscribePattern": f"{scene.topic}-[0-2]"}[way]
    records = scene.note("rows", collect_records(scene.batch(**{way: chosen}), WITH_TOPIC))
    assert records == produced


def test_a_topic_that_is_not_there(scene: Scene) -> None:
    assert scene.note("refusal", catch_failure(scene.batch().collect))[-1] == "UnknownTopicOrPartitionException"


def test_a_pattern_that_no_topic_fits(scene: Scene) -> None:
    assert scene.note("rows", collect_records(scene.batch(subscribePattern=scene.topic + ".*"))) == set()


def test_empty_topics_and_partitions(scene: Scene) -> None:
    scene.create(3)
    assert scene.note("nothing", collect_records(scene.batch())) == set()
    produced = scene.fill({1: ["only"]})
    assert scene.note("one partition", collect_records(scene.batch())) == produced == {(1, 0, "only")}


# The tasks of 90 and 30 records: (partition, first offset, records) of each.
CUT_IN_EIGHT = {(0, first, 15) for first in range(0, 90, 15)} | {(1, 0, 15), (1, 15, 15)}
CUT_AT_TWENTY = {(0, first, 18) for first in range(0, 90, 18)} | {(1, 0, 15), (1, 15, 15)}
UNCUT = {(0, 0, 90), (1, 0, 30)}


def fill_unevenly(scene: Scene) -> set[Record]:
    scene.create(2)
    return scene.fill({0: [f"0/{number}" for number in range(90)], 1: [f"1/{number}" for number in range(30)]})


def tasks_of(records: set[Any]) -> set[tuple[int, int, int]]:
    """Return (partition, first offset, records) of each task, from the task numbers in its records."""
    tasks: dict[tuple[int, int], list[int]] = {}
    for task, partition, offset, _ in records:
        tasks.setdefault((task, partition), []).append(offset)
    return {(partition, min(offsets), len(offsets)) for (_, partition), offsets in tasks.items()}


@pytest.mark.parametrize(
    ("option", "value", "tasks"), [("minPartitions", "8", CUT_IN_EIGHT), ("maxRecordsPerPartition", "20", UNCUT)]
)
def test_tasks_of_a_batch(scene: Scene, option: str, value: str, tasks: set[Any]) -> None:
    """Spark cuts the partitions' ranges in proportion to their lengths; in a batch the second option changes nothing."""
    produced = fill_unevenly(scene)
    records = collect_records(scene.batch(**{option: value}).selectExpr("spark_partition_id() as task", "*"), WITH_TASK)
    assert {record[1:] for record in records} == produced
    assert scene.note("tasks", tasks_of(records)) == tasks


@pytest.mark.parametrize(
    ("option", "value", "tasks"),
    [
        ("minPartitions", "8", CUT_IN_EIGHT),
        ("maxRecordsPerPartition", "20", CUT_AT_TWENTY if IS_SPARK_4 else UNCUT),
    ],
)
def test_tasks_of_a_stream(scene: Scene, option: str, value: str, tasks: set[Any]) -> None:
    produced = fill_unevenly(scene)
    frame = scene.stream(**{option: value}).selectExpr("spark_partition_id() as task", "*")
    records = scene.run_to_the_end(frame, columns=WITH_TASK).records()
    assert {record[1:] for record in records} == produced
    assert scene.note("tasks", tasks_of(records)) == tasks
