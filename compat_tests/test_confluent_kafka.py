"""The confluent-kafka client (librdkafka) in its everyday use."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from compat_tests.batches import RECENT_MS
from compat_tests.brokers import Broker
from compat_tests.confluent import admin_of, consumer_of, create_topic, produce, read, read_all
from compat_tests.waiting import until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def test_records_are_consumed_in_the_order_of_production(broker: Broker, name: str) -> None:
    create_topic(broker, name, 3)
    values = [f"value-{number}" for number in range(3000)]
    acknowledged = produce(broker, name, values)
    messages = read_all(broker, name, 3000, partitions=3)
    assert sorted(message.value().decode() for message in messages) == sorted(values)
    assert sorted((message.partition(), message.offset()) for message in messages) == sorted(acknowledged)
    for partition in range(3):
        offsets = [message.offset() for message in messages if message.partition() == partition]
        assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_codecs_and_acknowledgements(broker: Broker, name: str, codec: str, acks: str) -> None:
    create_topic(broker, name)
    values = [f"{codec} {number} " + "x" * 200 for number in range(500)]
    produce(broker, name, values, **{"compression.type": codec, "acks": acks})
    assert [message.value().decode() for message in read_all(broker, name, 500)] == values


def test_idempotent_producer(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    values = [str(number) for number in range(5000)]
    options = {"enable.idempotence": True, "batch.num.messages": 50, "max.in.flight": 5}
    acknowledged = produce(broker, name, values, **options)
    assert acknowledged == [(0, number) for number in range(5000)]
    assert [message.value().decode() for message in read_all(broker, name, 5000)] == values


def test_keys_headers_timestamps_and_nulls_come_back_as_sent(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    headers: Any = [("trace", b"\x00\x01"), ("empty", b""), ("none", None), ("trace", b"twice")]
    producer.produce(name, key=b"k", value=b"v", headers=headers, timestamp=RECENT_MS + 123)
    producer.produce(name, key=None, value=None, timestamp=RECENT_MS + 456)
    producer.produce(name, key=b"", value=b"", timestamp=RECENT_MS + 789)
    assert producer.flush(30) == 0
    full, nulls, empty = read_all(broker, name, 3)
    assert (full.key(), full.value(), full.headers()) == (b"k", b"v", headers)
    assert full.timestamp() == (TIMESTAMP_CREATE_TIME, RECENT_MS + 123)
    assert (nulls.key(), nulls.value(), nulls.headers()) == (None, None, None)
    assert (empty.key(), empty.value()) == (b"", b"")


def test_large_messages_and_the_limit(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    value = "m" * 900_000
    produce(broker, name, [value[:-10] + f"{number:010}" for number in range(3)])
    assert [len(message.value()) for message in read_all(broker, name, 3)] == [900_000] * 3
    create_topic(broker, name + "-small", max_message_bytes="1000")
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(name + "-small", value="x" * 2000, on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    assert [error.name() for error in errors] == ["MSG_SIZE_TOO_LARGE"]


def test_topic_is_created_by_producing_to_it(broker: Broker, name: str) -> None:
    assert produce(broker, name, ["first"]) == [(0, 0)]
    assert name in admin_of(broker).list_topics(timeout=10).topics


def test_offsets_by_time_and_watermarks(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 2})
    for number in range(10):
        producer.produce(name, value=str(number), timestamp=RECENT_MS + number * 1000)
    assert producer.flush(30) == 0
    consumer = consumer_of(broker, name)
    asked = [TopicPartition(name, 0, RECENT_MS + 4500)]
    assert consumer.offsets_for_times(asked, timeout=10)[0].offset == 5
    after_the_end = [TopicPartition(name, 0, 9_000_000_000_000)]
    assert consumer.offsets_for_times(after_the_end, timeout=10)[0].offset == -1
    assert consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=10) == (0, 10)
    consumer.close()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 5),
        (OffsetSpec.max_timestamp(), 2),
        (OffsetSpec.for_timestamp(RECENT_MS + 150), 2),
    ],
)
def test_admin_lists_offsets(broker: Broker, name: str, spec: OffsetSpec, expected: int) -> None:
    create_topic(broker, name)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for tenth in (0, 1, 4, 2, 3):
        producer.produce(name, value="x", timestamp=RECENT_MS + 100 * tenth)
    assert producer.flush(30) == 0
    part = TopicPartition(name, 0)
    assert admin_of(broker).list_offsets({part: spec})[part].result(10).offset == expected


def test_admin_deletes_records(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, [str(number) for number in range(10)], **{"batch.num.messages": 1})
    part = TopicPartition(name, 0, 6)
    assert admin_of(broker).delete_records([part])[part].result(10).low_watermark == 6
    assert [message.offset() for message in read_all(broker, name, 4)] == [6, 7, 8, 9]
    beyond = TopicPartition(name, 0, 11)
    with pytest.raises(KafkaException, match="OFFSET_OUT_OF_RANGE"):
        admin_of(broker).delete_records([beyond])[beyond].result(10)


def test_admin_topics_and_partitions(broker: Broker, name: str) -> None:
    admin = admin_of(broker)
    create_topic(broker, name, 2)
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        create_topic(broker, name, 2)
    with pytest.raises(KafkaException, match="TOPIC_EXCEPTION"):
        create_topic(broker, "no/slashes")
    with pytest.raises(KafkaException, match="INVALID_REPLICATION_FACTOR"):
        admin.create_topics([NewTopic(name + "-3", 1, 3)])[name + "-3"].result(10)
    admin.create_partitions([NewPartitions(name, 5)])[name].result(10)
    until(lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == 5)
    with pytest.raises(KafkaException, match="INVALID_PARTITIONS"):
        admin.create_partitions([NewPartitions(name, 5)])[name].result(10)
    admin.delete_topics([name])[name].result(10)
    until(lambda: name not in admin.list_topics(timeout=10).topics)
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        admin.delete_topics([name])[name].result(10)


def topic_config(broker: Broker, topic: str) -> Any:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return admin_of(broker).describe_configs([resource])[resource].result(10)


def test_admin_configs(broker: Broker, name: str) -> None:
    create_topic(broker, name, retention_ms="3600000")
    config = topic_config(broker, name)
    assert (config["retention.ms"].value, config["retention.ms"].is_default) == ("3600000", False)
    assert (config["segment.bytes"].value, config["segment.bytes"].is_default) == ("1073741824", True)
    changes = [
        ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
    ]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes)
    admin_of(broker).incremental_alter_configs([resource])[resource].result(10)
    until(lambda: topic_config(broker, name)["retention.ms"].value == "7200000")
    assert topic_config(broker, name)["cleanup.policy"].value == "delete,compact"
    wrong = [ConfigEntry("retention.ms", "soon", incremental_operation=AlterConfigOpType.SET)]
    refused = ConfigResource(ResourceType.TOPIC, name, incremental_configs=wrong)
    with pytest.raises(KafkaException, match="INVALID_CONFIG"):
        admin_of(broker).incremental_alter_configs([refused])[refused].result(10)


def test_admin_describes_cluster_and_topic(broker: Broker, name: str) -> None:
    create_topic(broker, name, 2)
    admin = admin_of(broker)
    cluster = admin.describe_cluster(request_timeout=10).result(10)
    assert [(node.id, node.port) for node in cluster.nodes] == [(1, broker.port)]
    assert cluster.cluster_id == admin.list_topics(timeout=10).cluster_id
    metadata = admin.list_topics(name, timeout=10).topics[name]
    assert {number: part.leader for number, part in metadata.partitions.items()} == {0: 1, 1: 1}


def test_admin_groups(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, ["one", "two"])
    consumer = consumer_of(broker, name)
    consumer.subscribe([name])
    consumer.commit(message=read(consumer, 2)[1], asynchronous=False)
    admin = admin_of(broker)
    described = admin.describe_consumer_groups([name])[name].result(10)
    assert (described.state.name, len(described.members)) == ("STABLE", 1)
    assert [part.topic for part in described.members[0].assignment.topic_partitions] == [name]
    with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
        admin.delete_consumer_groups([name])[name].result(10)
    consumer.close()
    until(lambda: admin.describe_consumer_groups([name])[name].result(10).state.name == "EMPTY")
    listed = admin.list_consumer_groups().result(10).valid
    assert name in [group.group_id for group in listed]
    admin.delete_consumer_groups([name])[name].result(10)
    assert name not in [group.group_id for group in admin.list_consumer_groups().result(10).valid]
