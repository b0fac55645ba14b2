"""The kafka-python client in its everyday use."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.errors import (
    CommitFailedError,
    RebalanceInProgressError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata

from compat_tests.batches import RECENT_MS
from compat_tests.brokers import Broker
from compat_tests.waiting import until

# A poll that ends while its member joins drops the join's answer, and with kafka-python 3.0 the member then hangs.
POLL_MS = 2000

CODECS = (None, "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


def consumer_of(broker: Broker, group: str | None = None, **options: Any) -> Any:
    settings = {
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "heartbeat_interval_ms": 500,
        "session_timeout_ms": 6000,
        "fetch_max_wait_ms": 100,
        **options,
    }
    return KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group, **settings)


def produce(broker: Broker, topic: str, values: list[bytes], **options: Any) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=5, **options)
    sent = [producer.send(topic, key=value, value=value) for value in values]
    producer.flush(30)
    for future in sent:
        future.get(30)
    producer.close()


def read(consumer: Any, count: int) -> list[Any]:
    """Poll until *count* records have come."""
    records: list[Any] = []

    def enough() -> bool:
        for batch in consumer.poll(timeout_ms=POLL_MS).values():
            records.extend(batch)
        return len(records) >= count

    until(enough, every_seconds=0)
    return records


def read_all(broker: Broker, topic: str, count: int, partitions: int = 1) -> list[Any]:
    consumer = consumer_of(broker)
    parts = [TopicPartition(topic, number) for number in range(partitions)]
    consumer.assign(parts)
    consumer.seek_to_beginning(*parts)
    records = read(consumer, count)
    consumer.close()
    return records


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(broker: Broker, admin: Any, name: str, codec: str | None) -> None:
    admin.create_topics([NewTopic(name, 2, 1)])
    values = [b"%06d " % number + b"x" * 100 for number in range(500)]
    produce(broker, name, values, compression_type=codec, acks="all")
    assert sorted(record.value for record in read_all(broker, name, 500, partitions=2)) == values


def test_keys_headers_timestamps_and_nulls_come_back_as_sent(broker: Broker, admin: Any, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    headers = [("trace", b"\x00\x01"), ("empty", b"")]
    producer.send(name, key=b"k", value=b"v", headers=headers, timestamp_ms=RECENT_MS + 123)
    producer.send(name, key=b"only", value=None, timestamp_ms=RECENT_MS + 456)
    producer.flush(30)
    full, tombstone = read_all(broker, name, 2)
    assert (full.key, full.value, list(full.headers), full.timestamp) == (b"k", b"v", headers, RECENT_MS + 123)
    assert (tombstone.key, tombstone.value, tombstone.offset) == (b"only", None, 1)


def test_idempotent_producer(broker: Broker, admin: Any, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    values = [b"%06d" % number for number in range(2000)]
    produce(broker, name, values, enable_idempotence=True, batch_size=500)
    assert [record.value for record in read_all(broker, name, 2000)] == values


def test_group_of_three(broker: Broker, admin: Any, name: str) -> None:
    admin.create_topics([NewTopic(name, 6, 1)])
    produce(broker, name, [b"%06d" % number for number in range(600)])
    seen: Counter[bytes] = Counter()
    shares: dict[int, int] = {}
    done = threading.Event()

    def member(number: int) -> None:
        consumer = consumer_of(broker, name)
        consumer.subscribe([name])
        while not done.is_set():
            for batch in consumer.poll(timeout_ms=POLL_MS).values():
                seen.update(record.value for record in batch)
            shares[number] = len(consumer.assignment())
            with suppress(RebalanceInProgressError, CommitFailedError):  # a later round commits
                if shares[number] == 2:
                    consumer.commit()
        consumer.close()

    threads = [threading.Thread(target=member, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(seen) == 600 and sorted(shares.values()) == [2, 2, 2])
    finally:
        done.set()
        for thread in threads:
            thread.join()
    committed = consumer_of(broker, name)
    offsets = [committed.committed(TopicPartition(name, number)) or 0 for number in range(6)]
    committed.close()
    assert sum(offsets) == 600


def test_committed_offsets_are_where_the_group_goes_on(broker: Broker, admin: Any, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    produce(broker, name, [b"%d" % number for number in range(10)])
    consumer = consumer_of(broker, name)
    consumer.subscribe([name])
    read(consumer, 10)
    consumer.commit({TopicPartition(name, 0): OffsetAndMetadata(4, "half way", -1)})
    consumer.close()
    again = consumer_of(broker, name)
    again.subscribe([name])
    assert read(again, 1)[0].offset == 4
    assert again.committed(TopicPartition(name, 0), metadata=True).metadata == "half way"
    again.close()


def test_offsets_by_time_and_bounds(broker: Broker, admin: Any, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, batch_size=0)
    for number in range(10):
        producer.send(name, value=b"x", timestamp_ms=RECENT_MS + 1000 * number).get(30)
    producer.close()
    part = TopicPartition(name, 0)
    consumer = consumer_of(broker)
    offset_and_time = consumer.offsets_for_times({part: RECENT_MS + 4_500})[part]
    assert (offset_and_time.offset, offset_and_time.timestamp) == (5, RECENT_MS + 5_000)
    assert consumer.offsets_for_times({part: 9_000_000_000_000})[part] is None
    assert consumer.beginning_offsets([part]) == {part: 0}
    assert consumer.end_offsets([part]) == {part: 10}
    consumer.close()


def test_admin_topics(admin: Any, name: str) -> None:
    admin.create_topics([NewTopic(name, 2, 1, topic_configs={"retention.ms": "3600000"})])
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([NewTopic(name, 2, 1)])
    assert name in admin.list_topics()
    assert len(admin.describe_topics([name])[0]["partitions"]) == 2
    admin.create_partitions({name: 4})
    until(lambda: len(admin.describe_topics([name])[0]["partitions"]) == 4)
    admin.delete_topics([name])
    until(lambda: name not in admin.list_topics())
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([name])


def test_admin_configs(admin: Any, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])

    def retention() -> str:
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        return str(admin.describe_configs([resource], config_filter="all")["topic"][name]["retention.ms"]["value"])

    assert retention() == "604800000"
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, configs={"retention.ms": "7200000"})])
    until(lambda: retention() == "7200000")


def test_admin_groups_and_offsets(broker: Broker, admin: Any, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    produce(broker, name, [b"a", b"b", b"c"])
    consumer = consumer_of(broker, name)
    consumer.subscribe([name])
    read(consumer, 3)
    consumer.commit()
    described = admin.describe_groups([name])[name]
    assert (described["group_state"], len(described["members"])) == ("Stable", 1)
    consumer.close()
    part = TopicPartition(name, 0)
    assert admin.list_group_offsets([name])[name][part].offset == 3
    assert name in [group["group_id"] for group in admin.list_groups()]
    admin.delete_groups([name])
    assert name not in [group["group_id"] for group in admin.list_groups()]


def test_admin_deletes_records(broker: Broker, admin: Any, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    produce(broker, name, [b"%d" % number for number in range(10)])
    part = TopicPartition(name, 0)
    admin.delete_records({part: 7})
    consumer = consumer_of(broker)
    assert consumer.beginning_offsets([part]) == {part: 7}
    consumer.close()
