"""Messages, a consumer and a producer in place of librdkafka's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition


class FakeMessage:
    """A record, or an event with an error."""

    def __init__(
        self,
        value: bytes | None = b"",
        *,
        offset: int = 0,
        partition: int = 0,
        key: bytes | None = None,
        headers: list[tuple[str, bytes | None]] | None = None,
        timestamp: tuple[int, int] = (1, 1000),
        error: int | None = None,
    ) -> None:
        self._value, self._offset, self._partition, self._key = value, offset, partition, key
        self._headers, self._timestamp = headers, timestamp
        self._error = None if error is None else KafkaError(error)

    def topic(self) -> str:
        return "t"

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return self._key

    def offset(self) -> int:
        return self._offset

    def partition(self) -> int:
        return self._partition

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        return self._timestamp

    def error(self) -> KafkaError | None:
        return self._error


def make_end(partition: int, offset: int) -> FakeMessage:
    """Return the event of a partition whose end is reached."""
    return FakeMessage(partition=partition, offset=offset, error=KafkaError._PARTITION_EOF)


class FakeConsumer:
    """Returns *batches* one by one, cut to the requested size, and then nothing."""

    def __init__(self, batches: list[list[FakeMessage]]) -> None:
        self._messages = batches
        self.requested: list[int] = []
        self.paused: list[int] = []
        self.stored: dict[int, int] = {}
        self.assigned: dict[int, int] = {}
        self.on_assign: Callable[[Any, list[TopicPartition]], None] | None = None
        self.on_revoke: Callable[[Any, list[TopicPartition]], None] | None = None
        self.before_batch: Callable[[int], None] = lambda number: None
        self.is_reachable = True

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = {partition.partition: partition.offset for partition in partitions}

    def subscribe(self, topics: list[str], on_assign: Any, on_revoke: Any) -> None:
        self.on_assign, self.on_revoke = on_assign, on_revoke

    def consume(self, count: int, timeout_s: float) -> list[FakeMessage]:
        self.before_batch(len(self.requested))
        self.requested.append(count)
        if not self._messages:
            return []
        batch = self._messages.pop(0)
        if len(batch) > count:
            self._messages.insert(0, batch[count:])
        return batch[:count]

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.paused += [partition.partition for partition in partitions]

    def store_offsets(self, offsets: list[TopicPartition]) -> None:
        self.stored |= {partition.partition: partition.offset for partition in offsets}

    def list_topics(self, topic: str, timeout_s: float) -> object:
        if not self.is_reachable:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return object()


class FakeProducer:
    """Keeps what is produced; *outcomes* are errors of librdkafka by value, and *room* the length of its queue."""

    def __init__(self, on_delivery: Callable[[Any, Any], None], *, outcomes: dict[bytes, int], room: int = 10) -> None:
        self._on_delivery, self._outcomes, self._room = on_delivery, outcomes, room
        self._waiting: list[bytes | None] = []
        self.sent: list[tuple[bytes | None, bytes | None, dict[str, Any]]] = []
        self.refused_at_once: set[bytes | None] = set()
        self.is_stuck = False

    def __len__(self) -> int:
        return len(self._waiting)

    def produce(self, topic: str, value: bytes | None, key: bytes | None, **options: Any) -> None:
        if value in self.refused_at_once:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        if len(self._waiting) >= self._room:
            raise BufferError
        self._waiting.append(value)
        self.sent.append((value, key, options))

    def poll(self, timeout_s: float) -> int:
        if self.is_stuck:
            return 0
        for value in self._waiting:
            if value in self._outcomes:
                self._on_delivery(KafkaError(self._outcomes[value]), None)
        self._waiting.clear()
        return 0

    def flush(self, timeout_s: float) -> int:
        self.poll(timeout_s)
        return len(self._waiting)
