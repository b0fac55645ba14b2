"""Storm's KafkaSpout and KafkaBolt in local mode: records go from topic to topic, at least once; it is killed once."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.frameworks.programme import FOLDER, Programme, start_java
from compat_tests.frameworks.reading import Reader, count_committed

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
            first.until(lambda: count_committed(broker, name, name, PARTITIONS) > 0)
            first.kill()
        produce(broker, name, values[RECORDS // 2 :])
        before = len(reader.read())
        with begin() as second:
            second.until(lambda: count_committed(broker, name, name, PARTITIONS) == RECORDS)
        texts = [record.texts for record in reader.read()]
    assert set(texts) == {(value[-20:], value) for value in values}
    # Only records that were not yet committed at the kill come again.
    assert len(texts) < before + RECORDS
