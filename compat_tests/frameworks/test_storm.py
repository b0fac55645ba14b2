"""Storm's KafkaSpout and KafkaBolt in local mode: records go from topic to topic, at least once; it is killed once."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from compat_tests.brokers import Broker
from compat_tests.confluent import consumer_of, create_topic, produce
from compat_tests.frameworks.programme import FOLDER, Programme, start_java
from compat_tests.frameworks.reading import Reader

pytestmark = pytest.mark.frameworks

POM = FOLDER / "storm" / "pom.xml"
SOURCE = FOLDER / "java" / "StormJob.java"
PARTITIONS = 3
RECORDS = 4000


def test_topology(broker: Broker, name: str, tmp_path: Path) -> None:
    for topic in (name, f"{name}-out"):
        create_topic(broker, topic, PARTITIONS)
    values = [f"value-{number:05}" for number in range(RECORDS)]

    def begin() -> Programme:
        arguments = [broker.bootstrap, name]
        return start_java("StormJob", arguments, tmp_path / "log", source=SOURCE, pom=POM, heap="512m")

    produce(broker, name, values[: RECORDS // 2])
    with closing(Reader(broker, f"{name}-out", PARTITIONS)) as reader:
        with begin() as first:
            first.until(reader.read)
            first.until(lambda: committed_records(broker, name) > 0)
            first.kill()
        produce(broker, name, values[RECORDS // 2 :])
        before = len(reader.read())
        with begin() as second:
            second.until(lambda: committed_records(broker, name) == RECORDS)
        texts = [record.texts for record in reader.read()]
    assert set(texts) == {(value[-20:], value) for value in values}
    # Only records that were not yet committed at the kill come again.
    assert len(texts) < before + RECORDS


def committed_records(broker: Broker, name: str) -> int:
    """The sum of the offsets that the group has committed, which is the number of records before them."""
    consumer = consumer_of(broker, name)
    try:
        places = consumer.committed([TopicPartition(name, number) for number in range(PARTITIONS)], timeout=30)
        return sum(max(place.offset, 0) for place in places)
    finally:
        consumer.close()
