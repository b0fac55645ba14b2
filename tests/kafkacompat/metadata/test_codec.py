"""The image of a store whose keys and values are those of ZooKeeper-mode Kafka's znodes."""

from __future__ import annotations

import json

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata import codec
from kafkacompat.metadata.image import NO_LEADER, ConfigKey, PartitionImage, TopicImage
from kafkacompat.metadata.store import StoreEntry, StoreError
from kafkacompat.metadata.znodes.cluster import encode_cluster_id
from kafkacompat.metadata.znodes.configs import encode_config
from kafkacompat.metadata.znodes.topics import encode_partition_state, encode_topic
from kafkacompat.wire.primitives import ZERO_UUID

UUID = bytes(range(16))
TOPIC = TopicImage(
    "orders",
    UUID,
    (
        PartitionImage(0, 1, 4, (1, 2), (1,), 3, is_recovering=True),
        PartitionImage(1, 2, 0, (2, 1, 3), (2, 1), 0, adding_replicas=(3,), removing_replicas=(1,)),
    ),
)


def encode_entries(topic: TopicImage) -> dict[str, StoreEntry]:
    """Return the entries of one topic."""
    folder = f"/brokers/topics/{topic.name}"
    states = {
        f"{folder}/partitions/{partition.partition}/state": StoreEntry(
            encode_partition_state(topic.name, partition, 1), partition.partition_epoch
        )
        for partition in topic.partitions
    }
    return {folder: StoreEntry(encode_topic(topic), 0), **states}


def test_a_topic_with_the_partition_epoch_from_the_version() -> None:
    image = codec.decode_image(encode_entries(TOPIC))
    assert image.topics == {"orders": TOPIC}
    assert image.topics_by_id == {UUID: TOPIC}


def test_a_partition_without_a_state_has_no_leader() -> None:
    entries = {key: entry for key, entry in encode_entries(TOPIC).items() if "partitions/1" not in key}
    partition = codec.decode_image(entries).topics["orders"].partitions[1]
    assert partition == PartitionImage(1, NO_LEADER, -1, (2, 1, 3), (), -1, (3,), (1,))


def test_topics_without_ids_are_known_by_name_only() -> None:
    value = b'{"version":1,"partitions":{"0":[1]}}'
    image = codec.decode_image({f"/brokers/topics/{name}": StoreEntry(value, 0) for name in ("a", "b")})
    assert [topic.topic_id for topic in image.topics.values()] == [ZERO_UUID, ZERO_UUID]
    assert image.topics_by_id == {}


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
def test_configurations(resource: ConfigKey, key: str) -> None:
    assert codec.format_config_key(resource) == key
    value = encode_config(key, {"a": "b=ü"})
    assert codec.decode_image({key: StoreEntry(value, 0)}).configs == {resource: {"a": "b=ü"}}


def test_the_cluster_id() -> None:
    assert codec.decode_image({codec.CLUSTER_ID: StoreEntry(encode_cluster_id("abc"), 0)}).cluster_id == "abc"
    assert codec.decode_image({}).cluster_id == ""


def test_a_tree_of_kafka_has_more_than_the_image() -> None:
    values = {
        "/brokers/ids": b"",
        "/brokers/ids/1": b"{}",
        "/brokers/seqid": b"",
        "/brokers/topics": b"",
        "/brokers/topics/orders/partitions": b"",
        "/brokers/topics/orders/partitions/0": b"",
        "/config/changes": b"",
        "/config/changes/config_change_0000000000": b'{"version":2,"entity_path":"topics/orders"}',
        "/config/topics": b"",
        "/config/topics/orders": b'{"version":1,"config":{}}',
        "/config/users/alice": b"",
        "/config/users/alice/clients": b"",
        "/config/users/bob": b'{"version":1,"config":{}}',
        "/controller": b"{}",
        "/controller_epoch": b"1",
        "/latest_producer_id_block": b"",
    }
    entries = {key: StoreEntry(value, 0) for key, value in values.items()}
    image, foreign = codec.decode_store({**encode_entries(TOPIC), **entries})
    assert (image.topics, image.configs, image.clients) == ({"orders": TOPIC}, {}, {})
    assert foreign == {}


def test_values_of_a_newer_release_are_kept_for_their_change() -> None:
    key = "/brokers/topics/orders"
    entries = encode_entries(TOPIC)
    changes: dict[str, dict[str, object]] = {key: {"version": 4}, f"{key}/partitions/1/state": {"elr": [4]}}
    for name, change in changes.items():
        entries[name] = StoreEntry(json.dumps({**json.loads(entries[name].value), **change}).encode(), 0)
    entries["/config/topics/orders"] = StoreEntry(b'{"version":1,"config":{"a":"1"},"by":"x"}', 0)
    image, foreign = codec.decode_store(entries)
    assert image.topics == {"orders": TOPIC}
    assert foreign == {
        name: entries[name].value for name in (key, f"{key}/partitions/1/state", "/config/topics/orders")
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("/brokers/topics/t", b"{"),
        ("/brokers/topics/t", b"{}"),
        ("/brokers/topics/t", b'{"topic_id":"short","partitions":{}}'),
        ("/brokers/topics/t", b'{"topic_id":"AAECAwQFBgcICQoLDA0ODw","partitions":{"1":[1]}}'),
        ("/brokers/topics/a b", b'{"partitions":{"0":[1]}}'),
        ("/brokers/topics/" + "t" * 250, b'{"partitions":{"0":[1]}}'),
        ("/config/topics/t", b'{"config":{"a":1}}'),
        ("/config/brokers/1", b"[]"),
        ("/cluster/id", b'{"id":7}'),
    ],
)
def test_damage_is_reported_with_its_key(key: str, value: bytes) -> None:
    with pytest.raises(StoreError, match=f"the metadata is damaged at {key}: "):
        codec.decode_image({key: StoreEntry(value, 0)})
