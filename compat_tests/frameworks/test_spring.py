"""Spring Kafka: a listener container with a transactional template and dead letters, ended in the middle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.frameworks.interruption import InterruptedJob
from compat_tests.frameworks.programme import FOLDER, Programme, serves_transactions, start_java
from compat_tests.frameworks.reading import Read, Reader, by_partition, read_topic

pytestmark = pytest.mark.frameworks

POM = FOLDER / "spring" / "pom.xml"
SOURCE = FOLDER / "java" / "SpringJob.java"
PARTITIONS = 3
RECORDS = 2000
POISON = "poison"
INTERRUPT: Mapping[str, Callable[[Programme], object]] = {
    "at-least-once": Programme.stop,
    "exactly-once": Programme.kill,
}


def make_values() -> list[str]:
    """Values that succeed, with a few that fail once ("shaky") and a few that fail always ("poison")."""
    return [f"{POISON if n % 100 == 7 else 'shaky' if n % 50 == 3 else 'good'}-{n:05}" for n in range(RECORDS)]


@pytest.mark.parametrize("guarantee", list(INTERRUPT))
def test_listener_container(broker: Broker, name: str, guarantee: str, tmp_path: Path) -> None:
    if not serves_transactions(broker):
        pytest.skip("the broker does not serve transactions yet")
    for topic in (name, f"{name}-out", f"{name}-dead"):
        create_topic(broker, topic, PARTITIONS)
    values = make_values()
    good = [value for value in values if POISON not in value]

    def begin() -> Programme:
        arguments = [guarantee, broker.bootstrap, name]
        return start_java("SpringJob", arguments, tmp_path / "log", source=SOURCE, pom=POM)

    produce(broker, name, values[: RECORDS // 2])
    with closing(Reader(broker, f"{name}-out", PARTITIONS)) as reader:
        job = InterruptedJob(begin, INTERRUPT[guarantee])
        job.run(reader, len(good), lambda: produce(broker, name, values[RECORDS // 2 :]))
        written = reader.records
    source = by_partition(read_topic(broker, name, PARTITIONS, RECORDS))
    assert texts_of(by_partition(written)) == capitals_of(source)
    dead = read_topic(broker, f"{name}-dead", PARTITIONS, RECORDS - len(good))
    assert sorted(record.texts for record in dead) == sorted(poisoned_of(source))
    for record in dead:
        assert source[record.partition][original_offset(record)].value == record.value


def capitals_of(source: Mapping[int, Sequence[Read]]) -> dict[int, list[tuple[str, str]]]:
    """Key and value of what each partition of the output must hold."""
    texts = {partition: [record.texts for record in records] for partition, records in source.items()}
    return {
        partition: [(key, value.upper()) for key, value in pairs if POISON not in value]
        for partition, pairs in texts.items()
    }


def texts_of(records: Mapping[int, Sequence[Read]]) -> dict[int, list[tuple[str, str]]]:
    """Key and value of each record."""
    return {partition: [record.texts for record in of_one] for partition, of_one in records.items()}


def poisoned_of(source: Mapping[int, Sequence[Read]]) -> list[tuple[str, str]]:
    """Key and value of the records that must be among the dead letters."""
    return [pair for pairs in texts_of(source).values() for pair in pairs if POISON in pair[1]]


def original_offset(dead: Read) -> int:
    """The offset that Spring Kafka writes into a header of a dead letter, as eight bytes."""
    packed = dict(dead.headers)["kafka_dlt-original-offset"]
    assert packed is not None
    return int.from_bytes(packed, "big")
