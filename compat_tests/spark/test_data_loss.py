"""Records that are gone before Spark has read them: it stops or continues, as `failOnDataLoss` says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from confluent_kafka import TopicPartition

from compat_tests.confluent import admin_of
from compat_tests.spark.scene import IS_SPARK_4, Record, Scene, catch_failure, collect_records, make_values
from compat_tests.waiting import until

pytestmark = pytest.mark.spark

# Spark looks three times for missing records, and waits this long for them. Its consumers would create a deleted topic
# again.
IMPATIENT = {
    "kafka.allow.auto.create.topics": "false",
    "kafkaConsumer.pollTimeoutMs": "10000",
    "fetchOffset.retryIntervalMs": "10",
    "kafka.default.api.timeout.ms": "10000",
    "kafka.request.timeout.ms": "10000",
}


def truncate_topic(scene: Scene, offset: int) -> None:
    """Let each partition begin at *offset*, as DeleteRecords does."""
    admin = admin_of(scene.broker)
    partitions = admin.list_topics(scene.topic, 30).topics[scene.topic].partitions
    asked = [TopicPartition(scene.topic, number, offset) for number in partitions]
    for deleted in admin.delete_records(asked).values():
        assert deleted.result(30).low_watermark == offset


def delete_topic(scene: Scene) -> None:
    """Delete the topic, and wait until no broker lists it."""
    admin = admin_of(scene.broker)
    admin.delete_topics([scene.topic])[scene.topic].result(30)
    until(lambda: scene.topic not in admin.list_topics(timeout=30).topics)


def recreate_topic(scene: Scene, count: int, partitions: int = 2) -> None:
    """Delete the topic, and create it again with *count* records in each partition."""
    delete_topic(scene)
    scene.create(partitions)
    scene.fill({part: [f"new {text}" for text in texts] for part, texts in make_values(count, partitions).items()})


OUT_OF_RANGE = "OffsetOutOfRangeException"
UNKNOWN = "UnknownTopicOrPartitionException"


def data_loss(condition: str) -> str:
    return f"KafkaIllegalStateException KAFKA_DATA_LOSS.{condition}" if IS_SPARK_4 else "IllegalStateException"


GONE_BACK = data_loss("PARTITION_OFFSET_CHANGED")


@dataclass(frozen=True)
class Loss:
    """A loss in a topic with 20 records in each partition, after a stream has read ten of them.

    If the stream continues, it reads the records of ``expected``, (kind, offsets), in each partition. If it must not
    continue, it fails with ``refused``; None if Spark does not notice the loss.
    """

    harm: Callable[[Scene], None]
    expected: tuple[str, range]
    refused: str | None


LOSSES = {
    "truncated": Loss(lambda scene: truncate_topic(scene, 15), ("", range(15, 20)), OUT_OF_RANGE),
    "emptied": Loss(lambda scene: truncate_topic(scene, 20), ("", range(0)), OUT_OF_RANGE),
    "read-truncated": Loss(lambda scene: truncate_topic(scene, 10), ("", range(10, 20)), None),
    "recreated-shorter": Loss(lambda scene: recreate_topic(scene, 5), ("new ", range(0)), GONE_BACK),
    "recreated-longer": Loss(lambda scene: recreate_topic(scene, 15), ("new ", range(10, 15)), None),
    "recreated-empty": Loss(lambda scene: recreate_topic(scene, 0), ("new ", range(0)), GONE_BACK),
}


def all_of(kind: str, offsets: range) -> set[Record]:
    return {(part, offset, f"{kind}{part}/{offset}") for part in range(2) for offset in offsets}


@pytest.mark.parametrize("fail", [True, False])
@pytest.mark.parametrize("kind", list(LOSSES))
def test_a_stream_resumes(scene: Scene, kind: str, fail: bool) -> None:
    loss = LOSSES[kind]
    scene.create(2)
    options = {"failOnDataLoss": str(fail).lower(), **IMPATIENT}
    first = scene.fill(make_values(10, 2))
    assert scene.run_to_the_end(scene.stream(**options)).records() == first
    scene.fill(make_values(10, 2, start=10))
    loss.harm(scene)
    query = scene.run(scene.stream(**options), availableNow=True)
    if fail and loss.refused is not None:
        assert scene.note("refusal", catch_failure(query.finish))[-1] == loss.refused
    else:
        query.finish()
        assert scene.note("rows", query.records()) == all_of(*loss.expected)


@pytest.mark.parametrize("fail", [True, False])
def test_a_stream_whose_topic_is_gone(scene: Scene, fail: bool) -> None:
    scene.create(2)
    options = {"failOnDataLoss": str(fail).lower(), **IMPATIENT}
    scene.fill(make_values(10, 2))
    scene.run_to_the_end(scene.stream(**options))
    delete_topic(scene)
    query = scene.run(scene.stream(**options), availableNow=True)
    assert scene.note("refusal", catch_failure(query.finish))[-1] == UNKNOWN


@pytest.mark.parametrize("fail", [True, False])
def test_a_pattern_one_of_whose_topics_is_gone(scene: Scene, fail: bool) -> None:
    other = scene.topic + "-other"
    scene.create(2)
    scene.create(2, other)
    options = {"subscribePattern": f"{scene.topic}.*", "failOnDataLoss": str(fail).lower(), **IMPATIENT}
    scene.fill(make_values(10, 2))
    scene.fill(make_values(10, 2), other)
    scene.run_to_the_end(scene.stream(**options))
    more = scene.fill(make_values(3, 2, start=10), other)
    delete_topic(scene)
    query = scene.run(scene.stream(**options))
    if fail:
        refused = scene.note("refusal", catch_failure(lambda: query.wait_for(more)))
        assert refused[-1] == data_loss("PARTITIONS_DELETED")
    else:
        query.wait_for(more)
        assert scene.note("rows", query.records()) == more


@pytest.mark.parametrize("fail", [True, False])
def test_a_batch_begins_before_the_log(scene: Scene, fail: bool) -> None:
    scene.create(2)
    produced = scene.fill(make_values(10, 2))
    truncate_topic(scene, 4)
    starts = json.dumps({scene.topic: {"0": 0, "1": 2}})
    frame = scene.batch(startingOffsets=starts, failOnDataLoss=str(fail).lower(), **IMPATIENT)
    if fail:
        assert scene.note("refusal", catch_failure(frame.collect))[-1] == OUT_OF_RANGE
    else:
        assert scene.note("rows", collect_records(frame)) == {record for record in produced if record[1] >= 4}


# The loss, and the records that the batch reads after it: (kind, offsets), or None if it fails with both settings.
HARMS: dict[str, tuple[Callable[[Scene], None], tuple[str, range] | None]] = {
    "truncated": (lambda scene: truncate_topic(scene, 4), ("", range(4, 10))),
    "deleted": (delete_topic, None),
    "recreated": (lambda scene: recreate_topic(scene, 5), ("new ", range(5))),
}


@pytest.mark.parametrize("fail", [True, False])
@pytest.mark.parametrize("harm", list(HARMS))
def test_a_batch_that_was_planned_before(scene: Scene, harm: str, fail: bool) -> None:
    """Offsets that the batch names are read as they are; each task looks up `earliest` and `latest`."""
    scene.create(2)
    scene.fill(make_values(10, 2))
    ranges = {
        "startingOffsets": json.dumps({scene.topic: {"0": 0, "1": 0}}),
        "endingOffsets": json.dumps({scene.topic: {"0": 10, "1": 10}}),
    }
    frame = scene.batch(failOnDataLoss=str(fail).lower(), **ranges, **IMPATIENT)
    planned = frame.selectExpr("partition", "offset", "string(value) as value").rdd
    do_harm, expected = HARMS[harm]
    do_harm(scene)
    if expected is None:
        assert scene.note("refusal", catch_failure(planned.collect))[-1] == "TimeoutException"
    elif fail:
        assert scene.note("refusal", catch_failure(planned.collect))[-1] == OUT_OF_RANGE
    else:
        assert scene.note("rows", {tuple(row) for row in planned.collect()}) == all_of(*expected)
