"""Drives kafka-python 1.0 and later. Options: ``api`` (the dialect, as 0.9), ``create`` (``auto`` or ``admin``),
``timestamps`` and ``headers`` (``no`` for releases and dialects without them), ``in_flight`` (requests of a connection;
the first releases ask for the broker's version with two at once, and fail if only one is allowed)."""

from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from compat_tests.matrix.clients.python.common import (
    PATIENCE_SECONDS,
    Commands,
    header,
    key,
    options,
    read,
    serve,
    tell_assigned,
    tell_record,
    value,
)

# A poll that ends while its member joins drops the join's answer, and with kafka-python 3.0 the member then hangs.
POLL_MS = 2000


class Client:
    def __init__(self, named: "dict[str, str]") -> None:
        self.common: "dict[str, Any]" = {"bootstrap_servers": named["bootstrap"]}
        if "api" in named:
            self.common["api_version"] = tuple(map(int, named["api"].split(".")))
        self.by_admin = named.get("create") != "auto"
        self.with_timestamps = named.get("timestamps") != "no"
        self.in_flight = int(named.get("in_flight", "1"))
        self.with_headers = named.get("headers") != "no"

    def create(self, topic: str, partitions: int) -> None:
        if not self.by_admin:
            producer = self.producer("none")
            producer.partitions_for(topic)
            producer.close()
            return
        from kafka.admin import KafkaAdminClient, NewTopic

        admin = KafkaAdminClient(**self.common)
        admin.create_topics([NewTopic(topic, partitions, 1)])
        admin.close()

    def producer(self, codec: str, **more: Any) -> Any:
        settings: "dict[str, Any]" = {"linger_ms": 5, "retries": 5, "acks": "all"}
        settings.update(self.common, max_in_flight_requests_per_connection=self.in_flight, **more)
        return KafkaProducer(compression_type=None if codec == "none" else codec, **settings)

    def produce(self, mode: str, topic: str, codec: str, numbers: range, timestamp: int) -> None:
        more: "dict[str, Any]" = {}
        if mode != "plain":
            more["enable_idempotence"] = True
        in_transaction = mode in ("aborted", "committed")
        if in_transaction:
            more["transactional_id"] = topic
        producer = self.producer(codec, **more)
        try:
            if in_transaction:
                producer.init_transactions()
                producer.begin_transaction()
            sent = [self.send(producer, topic, number, timestamp) for number in numbers]
            producer.flush(PATIENCE_SECONDS)
            for future in sent:
                future.get(PATIENCE_SECONDS)
            if in_transaction:
                producer.commit_transaction() if mode == "committed" else producer.abort_transaction()
        finally:
            producer.close(5)

    def send(self, producer: Any, topic: str, number: int, timestamp: int) -> Any:
        more: "dict[str, Any]" = {}
        if self.with_timestamps:
            more["timestamp_ms"] = timestamp + number
        if self.with_headers:
            more["headers"] = [("n", header(number))]
        return producer.send(topic, key=key(number), value=value(number), **more)

    def consumer(self, **more: Any) -> Any:
        settings = {
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "session_timeout_ms": 10000,
            "heartbeat_interval_ms": 500,
            "fetch_max_wait_ms": 100,
        }
        settings.update(self.common, **more)
        return KafkaConsumer(**settings)

    def consume(self, committed: bool, topic: str, partitions: int, count: int) -> None:
        consumer = self.consumer(**({"isolation_level": "read_committed"} if committed else {}))
        consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
        read(count, lambda: self.tell_next(consumer, 500))
        consumer.close()

    def join(self, topic: str, group: str, commands: Commands) -> None:
        consumer = self.consumer(group_id=group)
        consumer.subscribe([topic])
        assigned: Any = set()
        while not commands.leave():
            self.tell_next(consumer, POLL_MS)
            if consumer.assignment() != assigned:
                assigned = set(consumer.assignment())
                tell_assigned(partition.partition for partition in assigned)
        consumer.commit()
        consumer.close()

    def tell_next(self, consumer: Any, wait_ms: int) -> int:
        count = 0
        for records in consumer.poll(timeout_ms=wait_ms).values():
            for record in records:
                timestamp, headers = getattr(record, "timestamp", None), getattr(record, "headers", ())
                tell_record(record.partition, record.offset, record.key, record.value, timestamp, headers)
                count += 1
        return count


if __name__ == "__main__":
    serve(Client(options()))
