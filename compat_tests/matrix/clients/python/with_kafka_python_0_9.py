"""Drives kafka-python 0.9, whose clients are written for Kafka 0.8: the calls below its producers, and SimpleConsumer.

Its KeyedProducer sends each message alone, or as many as have one key: neither makes a compressed set of a batch."""

import time
from typing import Any

from kafka import KafkaClient, SimpleConsumer
from kafka.common import ProduceRequest
from kafka.partitioner import HashedPartitioner
from kafka.protocol import CODEC_GZIP, CODEC_NONE, CODEC_SNAPPY, create_message_set

from compat_tests.matrix.clients.python.common import (
    CHECK_EVERY_SECONDS,
    Commands,
    key,
    options,
    read,
    serve,
    tell_assigned,
    tell_record,
    value,
)

CODECS = {"none": CODEC_NONE, "gzip": CODEC_GZIP, "snappy": CODEC_SNAPPY}
ALL_IN_SYNC = -1


class Client:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def create(self, topic: str, partitions: int) -> None:
        client = self.connect()
        client.ensure_topic_exists(topic)
        client.close()

    def connect(self) -> Any:
        return KafkaClient(self.bootstrap, client_id=b"matrix", timeout=15)

    def produce(self, mode: str, topic: str, codec: str, numbers: range, timestamp: int) -> None:
        client = self.connect()
        client.ensure_topic_exists(topic)
        partitioner = HashedPartitioner(client.get_partition_ids_for_topic(topic))
        messages: "dict[int, list[Any]]" = {}
        for number in numbers:
            messages.setdefault(partitioner.partition(key(number)), []).append((value(number), key(number)))
        for partition, some in messages.items():
            request = ProduceRequest(topic.encode(), partition, create_message_set(some, CODECS[codec]))
            client.send_produce_request([request], acks=ALL_IN_SYNC, timeout=10000)
        client.close()

    def consumer(self, client: Any, group: str, topic: str) -> Any:
        return SimpleConsumer(
            client,
            group.encode(),
            topic.encode(),
            auto_commit=False,
            auto_offset_reset="smallest",
            fetch_size_bytes=1 << 20,
            buffer_size=1 << 20,
            max_buffer_size=None,
        )

    def consume(self, committed: bool, topic: str, partitions: int, count: int) -> None:
        client = self.connect()
        client.ensure_topic_exists(topic)
        consumer = self.consumer(client, topic + "-reader", topic)
        consumer.provide_partition_info()
        consumer.seek(0, 0)
        read(count, lambda: self.tell_next(consumer))
        client.close()

    def join(self, topic: str, group: str, commands: Commands) -> None:
        """No groups yet: read all partitions from what was committed, and commit in ZooKeeper (OffsetCommit v0)."""
        client = self.connect()
        client.ensure_topic_exists(topic)
        consumer = self.consumer(client, group, topic)
        consumer.provide_partition_info()
        tell_assigned(consumer.offsets)
        while not commands.leave():
            if not self.tell_next(consumer):
                time.sleep(CHECK_EVERY_SECONDS)
        consumer.commit()
        client.close()

    def tell_next(self, consumer: Any) -> int:
        messages = consumer.get_messages(count=500, block=True, timeout=0.2)
        for partition, entry in messages:
            tell_record(partition, entry.offset, entry.message.key, entry.message.value)
        return len(messages)


if __name__ == "__main__":
    serve(Client(options()["bootstrap"]))
