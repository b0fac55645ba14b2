"""The records of a topic, read as it grows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from compat_tests.brokers import Broker
from compat_tests.confluent import consumer_of
from compat_tests.waiting import until


class Read(NamedTuple):
    """One record; the partitions of a topic come in any order, the records of one in the order of their offsets."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def texts(self) -> tuple[str, str]:
        """Key and value as text."""
        return (self.key or b"").decode(), (self.value or b"").decode()


class Reader:
    """Reads the committed records of a topic from its beginning, without a group."""

    def __init__(self, broker: Broker, topic: str, partitions: int) -> None:
        self.records: list[Read] = []
        self._consumer = consumer_of(broker, f"{topic}-reader", **{"isolation.level": "read_committed"})
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])

    def read(self) -> list[Read]:
        """Poll for new records; return all records so far."""
        for message in self._consumer.consume(10_000, 0.2):
            assert message.error() is None, message.error()
            headers = tuple(message.headers() or ())
            self.records.append(
                Read(message.partition(), message.key(), message.value(), message.timestamp()[1], headers)
            )
        return self.records

    def close(self) -> None:
        self._consumer.close()


def read_topic(broker: Broker, topic: str, partitions: int, count: int) -> list[Read]:
    """Return the committed records of a topic once there are *count*; AssertionError if there are more."""
    with closing(Reader(broker, topic, partitions)) as reader:
        until(lambda: len(reader.read()) >= count)
        assert len(reader.read()) == count
        return reader.records


def count_committed(broker: Broker, group: str, topic: str, partitions: int) -> int:
    """Return the sum of the offsets that the group has committed: the number of records before them."""
    consumer = consumer_of(broker, group)
    try:
        places = consumer.committed([TopicPartition(topic, number) for number in range(partitions)], timeout=30)
        return sum(max(place.offset, 0) for place in places)
    finally:
        consumer.close()


def by_partition(records: Sequence[Read]) -> dict[int, list[Read]]:
    """The records of each partition that has any, in the order of their offsets."""
    partitions: dict[int, list[Read]] = defaultdict(list)
    for record in records:
        partitions[record.partition].append(record)
    return dict(partitions)


def by_key(records: list[Read]) -> dict[str, list[str]]:
    """The values of each key in the order in which they were written."""
    values: dict[str, list[str]] = defaultdict(list)
    for record in records:
        key, value = record.texts
        values[key].append(value)
    return dict(values)
