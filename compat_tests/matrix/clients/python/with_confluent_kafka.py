"""Drives confluent-kafka. Options with a dot in their names are librdkafka's."""

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition, libversion
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.matrix.clients.python.common import (
    CHECK_EVERY_SECONDS,
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

BEGINNING = -2
FIRST_WITH_ISOLATION = 0x01020000


class Client:
    def __init__(self, named: "dict[str, str]") -> None:
        self.common: "dict[str, Any]" = {"bootstrap.servers": named["bootstrap"], "client.id": "matrix"}
        self.common.update({name: value for name, value in named.items() if "." in name})

    def create(self, topic: str, partitions: int) -> None:
        admin = AdminClient(self.common)
        made = admin.create_topics([NewTopic(topic, partitions, 1)], operation_timeout=15)
        for future in made.values():
            future.result(PATIENCE_SECONDS)
        # Librdkafka 1.4 gives up at once a topic that a broker has made, but does not know of yet.
        deadline = time.monotonic() + PATIENCE_SECONDS
        while admin.list_topics(topic, PATIENCE_SECONDS).topics[topic].error is not None:
            if time.monotonic() > deadline:
                raise RuntimeError("the topic was not made")
            time.sleep(CHECK_EVERY_SECONDS)

    def produce(self, mode: str, topic: str, codec: str, numbers: range, timestamp: int) -> None:
        settings = dict(self.common, **{"acks": "all", "linger.ms": 5, "message.timeout.ms": 20000})
        settings.update({"compression.codec": codec, "max.in.flight.requests.per.connection": 1})
        in_transaction = mode in ("aborted", "committed")
        if mode != "plain":
            settings["enable.idempotence"] = True
        if in_transaction:
            settings["transactional.id"] = topic
        producer = Producer(settings)
        if in_transaction:
            producer.init_transactions(PATIENCE_SECONDS)
            producer.begin_transaction()
        self.send_all(producer, topic, numbers, timestamp)
        if in_transaction:
            end = producer.commit_transaction if mode == "committed" else producer.abort_transaction
            end(PATIENCE_SECONDS)

    def send_all(self, producer: Any, topic: str, numbers: range, timestamp: int) -> None:
        errors: Any = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                errors.append(error)

        for number in numbers:
            more = {"timestamp": timestamp + number, "headers": [("n", header(number))]}
            producer.produce(topic, value(number), key(number), on_delivery=delivered, **more)
        left = producer.flush(PATIENCE_SECONDS)
        if errors or left:
            raise RuntimeError("%s; %s are not delivered" % (errors[:1], left))

    def consumer(self, **more: Any) -> Any:
        settings = dict(self.common, **{"group.id": "none", "enable.auto.commit": False, "session.timeout.ms": 10000})
        settings.update({"heartbeat.interval.ms": 500, "fetch.wait.max.ms": 100, "auto.offset.reset": "earliest"})
        settings.update({name.replace("_", "."): value for name, value in more.items()})
        return Consumer(settings)

    def consume(self, committed: bool, topic: str, partitions: int, count: int) -> None:
        isolation = {"isolation_level": "read_committed" if committed else "read_uncommitted"}
        # The default of librdkafka, read_committed, came with the setting.
        consumer = self.consumer(**(isolation if libversion()[1] >= FIRST_WITH_ISOLATION else {}))
        consumer.assign([TopicPartition(topic, number, BEGINNING) for number in range(partitions)])
        read(count, lambda: self.tell_next(consumer))
        consumer.close()

    def join(self, topic: str, group: str, commands: Commands) -> None:
        consumer = self.consumer(group_id=group)

        def assigned(_: Any, partitions: Any) -> None:
            consumer.assign(partitions)
            tell_assigned(partition.partition for partition in partitions)

        def revoked(_: Any, partitions: Any) -> None:
            commit(consumer)
            consumer.unassign()

        consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
        while not commands.leave():
            self.tell_next(consumer)
        commit(consumer)
        consumer.close()

    def tell_next(self, consumer: Any) -> int:
        message = consumer.poll(0.2)
        if message is None:
            return 0
        if message.error():
            if message.error().code() == KafkaError._PARTITION_EOF:
                return 0
            raise KafkaException(message.error())
        tell_record(
            message.partition(),
            message.offset(),
            message.key(),
            message.value(),
            message.timestamp()[1],
            message.headers() or (),
        )
        return 1


def commit(consumer: Any) -> None:
    """Commit what was read since the last commit, if anything was."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as problem:
        if problem.args[0].code() != KafkaError._NO_OFFSET:
            raise


if __name__ == "__main__":
    serve(Client(options()))
