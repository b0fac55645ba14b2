"""Compacted topics: offsets without a record are neither reported as lost nor waited for."""

from __future__ import annotations

import json
from functools import partial

import pytest
from confluent_kafka import Producer

from compat_tests.conftest import MakeBroker
from compat_tests.spark.scene import Record, Scene, collect_records, read_stored
from compat_tests.waiting import pause, until

pytestmark = pytest.mark.spark

EAGER = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "100"}
CONFIG = {
    "cleanup_policy": "compact",
    "internal_segment_bytes": "2000",
    "min_cleanable_dirty_ratio": "0.01",
    "delete_retention_ms": "3600000",
}
WRITTEN = 1000
STRICT = {"failOnDataLoss": "true", "kafkaConsumer.pollTimeoutMs": "30000"}


@pytest.fixture
def compacted(scene: Scene, make_broker: MakeBroker) -> Scene:
    """A topic on a broker of its own, whose cleaner has removed most of its thousand records."""
    scene = scene.on(make_broker(EAGER))
    scene.create(1, **CONFIG)
    producer = Producer({"bootstrap.servers": scene.broker.bootstrap, "batch.num.messages": 7})
    for number in range(WRITTEN):
        value = None if number % 10 == 3 else b"value %d" % number
        producer.produce(scene.topic, key=b"key %d" % (number % 10), value=value, partition=0)
    assert producer.flush(30) == 0
    until(partial(is_settled, scene), timeout_seconds=180)
    return scene


def is_settled(scene: Scene) -> bool:
    """Return whether the cleaner has cleaned all that it may, which is all but the last segment."""
    before = read_stored(scene.broker, scene.topic)
    pause(1)
    return len(before) < WRITTEN / 5 and read_stored(scene.broker, scene.topic) == before


def test_a_batch_over_holes(compacted: Scene) -> None:
    """Holes are found also if some tasks have only holes, and if ranges begin and end in a hole."""
    stored = read_stored(compacted.broker, compacted.topic)
    offsets = {offset for _, offset, _ in stored}
    hole = next(offset for offset in range(100, WRITTEN) if not offsets & {offset - 1, offset, offset + 1})
    assert compacted.note("is as left", collect_records(compacted.batch(**STRICT)) == stored) is True
    assert compacted.note("by tasks", collect_records(compacted.batch(minPartitions="200", **STRICT)) == stored) is True
    ranges = {
        "startingOffsets": json.dumps({compacted.topic: {"0": 1}}),
        "endingOffsets": json.dumps({compacted.topic: {"0": hole}}),
    }
    records = collect_records(compacted.batch(**ranges, **STRICT))
    assert compacted.note("range", records == {record for record in stored if 1 <= record[1] < hole}) is True


def test_a_stream_over_holes(compacted: Scene) -> None:
    stored = read_stored(compacted.broker, compacted.topic)
    query = compacted.run_to_the_end(compacted.stream(maxOffsetsPerTrigger="100", **STRICT))
    assert compacted.note("is as left", query.records() == stored) is True
    assert compacted.note("ranges", query.ranges())[-1]["to"] == {compacted.topic: {"0": WRITTEN}}
    assert min(len(batch) for batch in query.batches.values()) < 10


def test_compacted_while_a_stream_runs(scene: Scene, make_broker: MakeBroker) -> None:
    """Records arrive completely or, if the cleaner was faster, without the removed ones; each key's last one arrives."""
    scene = scene.on(make_broker(EAGER))
    scene.create(1, **CONFIG)
    query = scene.run(scene.stream(maxOffsetsPerTrigger="150", **STRICT))
    producer = Producer({"bootstrap.servers": scene.broker.bootstrap, "batch.num.messages": 7})
    written: set[Record] = set()
    for number in range(WRITTEN):
        producer.produce(scene.topic, key=b"key %d" % (number % 10), value=b"value %d" % number, partition=0)
        written.add((0, number, f"value {number}"))
    assert producer.flush(30) == 0
    last = {(0, number, f"value {number}") for number in range(WRITTEN - 10, WRITTEN)}
    query.wait_for(last)
    records = query.records()
    assert scene.note("last", records & last) == last
    assert records <= written
    assert records >= read_stored(scene.broker, scene.topic)
