"""Keys and values are those of ZooKeeper-mode Kafka's znodes."""

from __future__ import annotations

import json

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata import codec
from kafkacompat.metadata.image import NO_LEADER, PartitionImage, TopicImage
from kafkacompat.metadata.store import StoreEntry, StoreError

UUID = bytes(range(16))
TOPIC = TopicImage(
    "orders", UUID, (PartitionImage(0, 1, 4, (1, 2), (1,), 3), PartitionImage(1, 2, 0, (2, 1), (2, 1), 0))
)


def test_a_topic_as_kafka_wrote_it_to_zookeeper() -> None:
    entries = {key: json.loads(value) for key, value in codec.encode_topic(TOPIC).items()}
    assert entries == {
        "/brokers/topics/orders": {
            "version": 3,
            "topic_id": "AAECAwQFBgcICQoLDA0ODw",
            "partitions": {"0": [1, 2], "1": [2, 1]},
            "adding_replicas": {},
            "removing_replicas": {},
        },
        "/brokers/topics/orders/partitions/0/state": {
            "controller_epoch": 1,
            "leader": 1,
            "version": 1,
            "leader_epoch": 4,
            "isr": [1],
        },
        "/brokers/topics/orders/partitions/1/state": {
            "controller_epoch": 1,
            "leader": 2,
            "version": 1,
            "leader_epoch": 0,
            "isr": [2, 1],
        },
    }


def test_reads_what_it_writes_with_the_partition_epoch_from_the_version() -> None:
    entries = {key: StoreEntry(value, 0) for key, value in codec.encode_topic(TOPIC).items()}
    state = "/brokers/topics/orders/partitions/0/state"
    entries[state] = StoreEntry(entries[state].value, 3)
    image = codec.decode_image(entries)
    assert image.topics == {"orders": TOPIC}
    assert image.topics_by_id == {UUID: TOPIC}


def test_a_partition_without_a_state_has_no_leader() -> None:
    entries = {
        key: StoreEntry(value, 0) for key, value in codec.encode_topic(TOPIC).items() if "partitions/1" not in key
    }
    partition = codec.decode_image(entries).topics["orders"].partitions[1]
    assert partition == PartitionImage(1, NO_LEADER, -1, (2, 1), (), -1)


@pytest.mark.parametrize(
    ("resource", "key"),
    [
        ((ResourceType.TOPIC, "orders"), "/config/topics/orders"),
        ((ResourceType.BROKER, "1"), "/config/brokers/1"),
        ((ResourceType.BROKER, ""), "/config/brokers/<default>"),
        ((ResourceType.GROUP, "a/b <default>%"), "/config/groups/a%2Fb%20%3Cdefault%3E%25"),
        ((ResourceType.CLIENT_METRICS, "m"), "/config/client-metrics/m"),
    ],
)
def test_configurations(resource: tuple[ResourceType, str], key: str) -> None:
    assert codec.format_config_key(resource) == key
    value = codec.encode_config({"a": "b=ü"})
    assert json.loads(value) == {"version": 1, "config": {"a": "b=ü"}}
    assert codec.decode_image({key: StoreEntry(value, 0)}).configs == {resource: {"a": "b=ü"}}


def test_cluster_id_and_producer_ids() -> None:
    entries = {
        codec.CLUSTER_ID: StoreEntry(codec.encode_cluster_id("abc"), 0),
        codec.PRODUCER_IDS: StoreEntry(codec.encode_producer_ids(7, range(1000, 2000)), 1),
    }
    assert json.loads(entries[codec.PRODUCER_IDS].value) == {
        "version": 1,
        "broker": 7,
        "block_start": "1000",
        "block_end": "1999",
    }
    assert codec.decode_image(entries).cluster_id == "abc"
    assert codec.decode_next_producer_id(entries[codec.PRODUCER_IDS]) == 2000
    assert codec.decode_next_producer_id(None) == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("/brokers/topics/t", b"{"),
        ("/brokers/topics/t", b"{}"),
        ("/brokers/topics/t", b'{"topic_id":"short","partitions":{}}'),
        ("/brokers/topics/t", b'{"topic_id":"AAECAwQFBgcICQoLDA0ODw","partitions":{"1":[1]}}'),
    ],
)
def test_damage_is_told_with_its_key(key: str, value: bytes) -> None:
    with pytest.raises(StoreError, match="the metadata is damaged at /brokers/topics/t: "):
        codec.decode_image({key: StoreEntry(value, 0)})
