"""Keys and values of the metadata store: the paths and the JSON of ZooKeeper-mode Kafka's znodes.

=====================================  =================================================================
/cluster/id                            {"version":"1","id":...}
/brokers/topics/T                      {"version":3,"topic_id":...,"partitions":{"0":[1]},...}
/brokers/topics/T/partitions/N/state   {"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}
/config/<kind>/<name>                  {"version":1,"config":{...}}; kinds are topics, brokers, groups, ...
/config/users, clients, ips/...        see `client_entities`
/latest_producer_id_block              {"version":1,"broker":1,"block_start":"0","block_end":"999"}
=====================================  =================================================================

A partition's epoch is the version of its state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import (
    ClientConfig,
    Entity,
    is_client_key,
    parse_client_key,
    parse_client_values,
)
from kafkacompat.metadata.image import NO_LEADER, ConfigKey, MetadataImage, PartitionImage, TopicImage
from kafkacompat.metadata.store import StoreEntry, StoreError
from kafkacompat.wire.primitives import format_uuid, parse_uuid

CLUSTER_ID = "/cluster/id"
PRODUCER_IDS = "/latest_producer_id_block"

_TOPICS = "/brokers/topics/"
_CONFIG_FOLDERS = {
    ResourceType.TOPIC: "topics",
    ResourceType.BROKER: "brokers",
    ResourceType.GROUP: "groups",
    ResourceType.CLIENT_METRICS: "client-metrics",
}
_CONFIG_TYPES = {folder: resource for resource, folder in _CONFIG_FOLDERS.items()}
_DEFAULT_NAME = "<default>"
_ENCODER = json.JSONEncoder(separators=(",", ":"))


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Encode a store's value."""
    return _ENCODER.encode(value).encode()


def encode_cluster_id(cluster_id: str) -> bytes:
    """Encode the value of /cluster/id."""
    return encode_json({"version": "1", "id": cluster_id})


def encode_producer_ids(node_id: int, block: range) -> bytes:
    """Encode the value of /latest_producer_id_block: the block that was allocated last."""
    return encode_json(
        {"version": 1, "broker": node_id, "block_start": str(block.start), "block_end": str(block.stop - 1)}
    )


def decode_next_producer_id(entry: StoreEntry | None) -> int:
    """Return the first producer id that was never allocated."""
    return 0 if entry is None else int(_parse_value(PRODUCER_IDS, entry)["block_end"]) + 1


def encode_topic(topic: TopicImage) -> dict[str, bytes]:
    """Encode one topic as keys and values."""
    folder = f"{_TOPICS}{topic.name}"
    entries = {
        folder: encode_json(
            {
                "version": 3,
                "topic_id": format_uuid(topic.topic_id),
                "partitions": {str(partition.partition): partition.replicas for partition in topic.partitions},
                "adding_replicas": {},
                "removing_replicas": {},
            }
        )
    }
    for partition in topic.partitions:
        state = _encode_state(partition.leader, partition.leader_epoch, partition.in_sync_replicas)
        entries[f"{folder}/partitions/{partition.partition}/state"] = state
    return entries


@lru_cache
def _encode_state(leader: int, leader_epoch: int, in_sync_replicas: tuple[int, ...]) -> bytes:
    """Encode a partition's state; cached, because most partitions of a topic have the same one."""
    return encode_json(
        {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": leader_epoch, "isr": in_sync_replicas}
    )


def format_config_key(resource: ConfigKey) -> str:
    """Build the key of one resource's configuration."""
    kind, name = resource
    return f"/config/{_CONFIG_FOLDERS[ResourceType(kind)]}/{quote(name, safe='') or _DEFAULT_NAME}"


def encode_config(configs: Mapping[str, str]) -> bytes:
    """Encode one resource's configuration."""
    return encode_json({"version": 1, "config": dict(configs)})


def decode_image(entries: Mapping[str, StoreEntry]) -> MetadataImage:
    """Build the image of all entries of a store; the store holds no brokers.

    Raises StoreError for a value that does not have the form that its key requires.
    """
    topics: dict[str, TopicImage] = {}
    configs: dict[ConfigKey, dict[str, str]] = {}
    clients: dict[Entity, ClientConfig] = {}
    cluster_id = ""
    for key, entry in entries.items():
        folder, _, name = key.rpartition("/")
        if f"{folder}/" == _TOPICS:
            topics[name] = _decode_topic(name, entries)
        elif is_client_key(key):
            clients.update([_decode_client(key, entry)])
        elif folder.startswith("/config/"):
            resource = (_CONFIG_TYPES[folder.removeprefix("/config/")], "" if name == _DEFAULT_NAME else unquote(name))
            configs[resource] = _parse_value(key, entry)["config"]
        elif key == CLUSTER_ID:
            cluster_id = _parse_value(key, entry)["id"]
    return MetadataImage(cluster_id=cluster_id, configs=configs, clients=clients).with_topics(topics)


def _decode_topic(name: str, entries: Mapping[str, StoreEntry]) -> TopicImage:
    key = f"{_TOPICS}{name}"
    value = _parse_value(key, entries[key])
    try:
        replicas = {int(index): tuple(nodes) for index, nodes in value["partitions"].items()}
        partitions = [_decode_partition(name, index, replicas[index], entries) for index in range(len(replicas))]
        return TopicImage(name, parse_uuid(value["topic_id"]), tuple(partitions))
    except (KeyError, ValueError) as problem:
        raise _damage_error(key, problem) from problem


def _decode_partition(
    name: str, index: int, replicas: tuple[int, ...], entries: Mapping[str, StoreEntry]
) -> PartitionImage:
    key = f"{_TOPICS}{name}/partitions/{index}/state"
    if key not in entries:
        # A controller creates the state after the topic, and may have stopped in between.
        return PartitionImage(index, NO_LEADER, -1, replicas, (), -1)
    value = _parse_value(key, entries[key])
    in_sync = tuple(value["isr"])
    return PartitionImage(index, value["leader"], value["leader_epoch"], replicas, in_sync, entries[key].version)


def _decode_client(key: str, entry: StoreEntry) -> tuple[Entity, ClientConfig]:
    try:
        return parse_client_key(key), parse_client_values(_parse_value(key, entry)["config"])
    except (KeyError, ValueError) as problem:
        raise _damage_error(key, problem) from problem


def _parse_value(key: str, entry: StoreEntry) -> Any:
    try:
        return json.loads(entry.value)
    except ValueError as problem:
        raise _damage_error(key, problem) from problem


def _damage_error(key: str, problem: Exception) -> StoreError:
    ways = "restore it, or move its file away to take over what the log directories hold"
    return StoreError(f"the metadata is damaged at {key}: {problem}; {ways}")
