"""Clients that continue through kills, and the acknowledgements that they have at any time.

Each partition has one producer, which numbers its records from 0: as long as nothing is lost, doubled or out of order, a
record's number is its offset.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.waiting import pause

QUIET: dict[str, Any] = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}
GROUP: dict[str, Any] = {"group.id": "killed", "enable.auto.commit": False, "auto.offset.reset": "earliest", **QUIET}

KEPT, RETAINED, SHORTENED, COMPACTED = "kept", "retained", "shortened", "compacted"
SMALL_SEGMENTS = {"segment.bytes": str(1 << 20), "file.delete.delay.ms": "1000"}
TOPICS: dict[str, dict[str, str]] = {
    KEPT: {"retention.bytes": "-1"},
    RETAINED: {"retention.bytes": str(3 << 20)},
    SHORTENED: {"retention.bytes": "-1"},
    COMPACTED: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
}
PARTITIONS = 2
KEYS = 100
IN_FLIGHT = 400
PADDING = b"." * 700
LEFT_BY_DELETE_RECORDS = 1000
LONGEST_STOP_SECONDS = 90


class Known(NamedTuple):
    """The acknowledgements up to a moment: records of each partition, a commit, and DeleteRecords."""

    acknowledged: dict[tuple[str, int], int]
    committed: int
    start_offset: int


class Load:
    """Producers to all topics, one consumer's commits, and DeleteRecords, each in a thread of its own, until `stop`."""

    def __init__(self, bootstrap: str) -> None:
        self._client = {"bootstrap.servers": bootstrap, **QUIET}
        self.sent: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.acknowledged: defaultdict[tuple[str, int], int] = defaultdict(int)
        """How many of each partition's records; they are acknowledged in their order."""
        self.committed = -1
        """The last offset whose commit was acknowledged."""
        self.committing = -1
        self.start_offset = 0
        """Where DeleteRecords, as far as it was answered, let the partitions of SHORTENED begin."""
        self.problems: list[str] = []
        self._stopping = threading.Event()
        works: list[Callable[[], None]] = [partial(self._produce, topic) for topic in TOPICS]
        works += [self._commit, self._delete_records]
        # A commit is tried for ever where the broker does not come back.
        self._threads = [threading.Thread(target=self._guarded, args=(work,), daemon=True) for work in works]

    def start(self) -> None:
        """Make the topics and begin."""
        admin = AdminClient(self._client)
        topics = [NewTopic(name, PARTITIONS, 1, config={**SMALL_SEGMENTS, **own}) for name, own in TOPICS.items()]
        for made in admin.create_topics(topics).values():
            made.result(30)
        for thread in self._threads:
            thread.start()

    def known(self) -> Known:
        """Return the acknowledgements so far."""
        return Known(dict(self.acknowledged), self.committed, self.start_offset)

    def stop(self) -> None:
        """Stop sending, and wait for the acknowledgements."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(LONGEST_STOP_SECONDS)
        if any(thread.is_alive() for thread in self._threads):
            self.problems.append(f"a client has not stopped after {LONGEST_STOP_SECONDS} s")

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as problem:
            self.problems.append(f"{work}: {problem!r}")

    def _produce(self, topic: str) -> None:
        producer = Producer({**self._client, "enable.idempotence": True, "linger.ms": 2, "batch.num.messages": 50})

        def delivered(number: int, error: Any, message: Any) -> None:
            name = topic, message.partition()
            if error is not None or message.offset() not in (number, -1) or self.acknowledged[name] != number:
                self.problems.append(f"{name}: number {number} was answered with {error}, offset {message.offset()}")
            self.acknowledged[name] = number + 1

        while not self._stopping.is_set():
            for partition in range(PARTITIONS):
                number = self.sent[topic, partition]
                if number - self.acknowledged[topic, partition] < IN_FLIGHT:
                    self.sent[topic, partition] = number + 1
                    value, key = b"%d %s" % (number, PADDING), b"%d" % (number % KEYS)
                    producer.produce(topic, value, key, partition, on_delivery=partial(delivered, number))
            producer.poll(0.001)
        if left := producer.flush(60):
            self.problems.append(f"{topic}: {left} records were not acknowledged within a minute")

    def _commit(self) -> None:
        consumer = Consumer({**self._client, **GROUP})
        while not self._stopping.is_set():
            self.committing += 1
            try:
                consumer.commit(offsets=[TopicPartition(KEPT, 0, self.committing)], asynchronous=False)
                self.committed = self.committing
            except KafkaException:
                pause(0.05)  # the broker is gone for a moment
        consumer.close()

    def _delete_records(self) -> None:
        admin = AdminClient(self._client)
        while not self._stopping.is_set():
            pause(0.2)
            counts = [self.acknowledged[SHORTENED, partition] for partition in range(PARTITIONS)]
            offset = min(counts) - LEFT_BY_DELETE_RECORDS
            if offset > self.start_offset:
                places = [TopicPartition(SHORTENED, partition, offset) for partition in range(PARTITIONS)]
                try:
                    for answer in admin.delete_records(places, request_timeout=5).values():
                        answer.result()
                    self.start_offset = offset
                except KafkaException:
                    continue
