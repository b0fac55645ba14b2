"""`KafkaUtils`: a broker of this process with the interface of PySpark's class of that name, without Docker.

PySpark's class is in ``pyspark/sql/tests/streaming/kafka_utils.py`` of its sources; see docs/testing/dropins.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from kafkacompat.testing.errors import BrokerError
from kafkacompat.testing.starting import broker

if TYPE_CHECKING:
    from kafkacompat.testing.running import RunningBroker


class KafkaUtils:
    """A broker for tests of Spark, which runs from `setup` to `teardown`.

    ``broker`` is the value of ``kafka.bootstrap.servers``, None while the broker does not run. ``kafka`` is the `RunningBroker`.
    """

    def __init__(self, kafka_version: str = "") -> None:
        """Accept *kafka_version*, the tag of a container image; it has no effect."""
        self.kafka_version = kafka_version
        self.broker: str | None = None
        self._kafka: RunningBroker | None = None
        self._producer: Any = None
        self._admin_client: Any = None

    @property
    def initialized(self) -> bool:
        """Whether the broker runs."""
        return self._kafka is not None

    @property
    def kafka(self) -> RunningBroker:
        """The running broker; raises BrokerError before `setup` and after `teardown`."""
        if self._kafka is None:
            raise BrokerError("the broker of KafkaUtils does not run: call setup() first")
        return self._kafka

    def setup(self) -> None:
        """Start the broker; raises BrokerError, one sentence. A second call does nothing."""
        if self._kafka is None:
            self._kafka = broker()
            self.broker = self._kafka.bootstrap_servers

    def teardown(self) -> None:
        """Close the clients, stop the broker and forget its data; a second call does nothing."""
        clients, self._producer, self._admin_client = (self._producer, self._admin_client), None, None
        for client in clients:
            if client is not None:
                client.close()
        kafka, self._kafka, self.broker = self._kafka, None, None
        if kafka is not None:
            kafka.stop()

    # Topics and records

    def create_topics(self, topic_names: Sequence[str], num_partitions: int = 1, replication_factor: int = 1) -> None:
        """Create topics; those that exist stay as they are."""
        existing = self._list_topics()
        for name in topic_names:
            if name not in existing:
                self.kafka.create_topic(name, num_partitions, replication_factor)

    def delete_topics(self, topic_names: Sequence[str]) -> None:
        """Delete topics; missing ones are ignored."""
        existing = self._list_topics()
        for name in topic_names:
            if name in existing:
                self.kafka.delete_topic(name)

    def _list_topics(self) -> set[str]:
        kafka = self.kafka
        names: set[str] = kafka.call(lambda: set(kafka.broker.metadata.image.topics))
        return names

    def send_messages(self, topic: str, messages: Iterable[tuple[Any, Any]]) -> None:
        """Append pairs of key and value to a topic, as UTF-8 of their ``str``; None stays null."""
        self.kafka.produce(topic, [(_encode(key), _encode(value)) for key, value in messages])

    def get_all_records(
        self, spark: Any, topic: str, key_deserializer: str = "STRING", value_deserializer: str = "STRING"
    ) -> list[tuple[Any, Any]]:
        """Return the records of a topic as Spark reads them, as sorted pairs of key and value, cast to the types of SQL."""
        options = {"kafka.bootstrap.servers": self.kafka.bootstrap_servers, "subscribe": topic}
        frame = spark.read.format("kafka").options(**options, startingOffsets="earliest", endingOffsets="latest").load()
        columns = (f"CAST(key AS {key_deserializer}) AS k", f"CAST(value AS {value_deserializer}) AS v")
        return sorted((row.k, row.v) for row in frame.selectExpr(*columns).collect())

    # Waiting

    def assert_eventually(
        self, result_func: Callable[[], Any], expected: Any, timeout: float = 60, interval: float = 1.0
    ) -> None:
        """Call a function every *interval* seconds until it returns *expected*; raises AssertionError after *timeout* seconds."""
        results: list[Any] = []

        def is_expected() -> bool:
            results[:] = [result_func()]
            return bool(results[0] == expected)

        if not _repeat(is_expected, timeout, interval):
            shown = results[0] if results else "no result"
            raise AssertionError(f"after {timeout:g} s the result is {shown!r}, not {expected!r}")

    def wait_for_query_alive(self, query: Any, timeout: float = 60, interval: float = 1.0) -> None:
        """Wait until a streaming query processes data; raises its exception, and AssertionError after *timeout* seconds."""

        def is_alive() -> bool:
            if (problem := query.exception()) is not None:
                raise problem
            return bool(query.status["isDataAvailable"] or query.status["isTriggerActive"])

        if not _repeat(is_alive, timeout, interval):
            raise AssertionError(f"the query is not active after {timeout:g} s: {query.status}")

    # Clients

    @property
    def producer(self) -> Any:
        """A KafkaProducer of kafka-python that sends the UTF-8 of each key's and value's ``str``."""
        if self._producer is None:
            from kafka import KafkaProducer

            self._producer = KafkaProducer(
                bootstrap_servers=self.kafka.bootstrap_servers, key_serializer=_encode, value_serializer=_encode
            )
        return self._producer

    @property
    def admin_client(self) -> Any:
        """A KafkaAdminClient of kafka-python."""
        if self._admin_client is None:
            from kafka import KafkaAdminClient

            self._admin_client = KafkaAdminClient(bootstrap_servers=self.kafka.bootstrap_servers)
        return self._admin_client


def _encode(value: Any) -> bytes | None:
    return None if value is None else str(value).encode()


def _repeat(check: Callable[[], bool], timeout_s: float, interval_s: float) -> bool:
    """Call *check* until it returns True, for at most *timeout_s* seconds; returns its last result."""
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not check():
        if time.monotonic() >= deadline:
            return False
        pause.wait(interval_s)
    return True
