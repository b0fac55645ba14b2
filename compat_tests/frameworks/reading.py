"""The records of a topic, read as it grows."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from compat_tests.brokers import Broker
from compat_tests.confluent import consumer_of


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


def by_key(records: list[Read]) -> dict[str, list[str]]:
    """The values of each key in the order in which they were written."""
    found: dict[str, list[str]] = defaultdict(list)
    for record in records:
        key, value = record.texts
        found[key].append(value)
    return dict(found)
