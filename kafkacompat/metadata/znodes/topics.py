"""The values of a topic's znode and of its partitions' states."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kafkacompat.metadata.image import NO_LEADER, PartitionImage, TopicImage
from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.znodes.values import Fields, Schema, build_damage_error, parse_fields, quote_name
from kafkacompat.wire.primitives import ZERO_UUID, format_uuid, parse_uuid

TOPIC = Schema(3, "topic_id", "partitions", "adding_replicas", "removing_replicas")
"""Version 1 has only the partitions, version 2 no topic id."""

_STATE = Schema(1, "controller_epoch", "leader", "leader_epoch", "isr", "leader_recovery_state")

_RECOVERED, _RECOVERING = 0, 1


class Assignment(NamedTuple):
    """The replicas of one partition; see `PartitionImage`."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class TopicAssignment(NamedTuple):
    """A topic's id and its partitions' replicas; the id is ZERO_UUID until a controller gives the topic one."""

    topic_id: bytes
    partitions: tuple[Assignment, ...]


class LeaderIsrAndControllerEpoch(NamedTuple):
    """Leader and in-sync replicas of a partition, and the epoch of the controller that wrote them."""

    leader: int
    leader_epoch: int
    in_sync_replicas: tuple[int, ...]
    is_recovering: bool
    controller_epoch: int


def encode_topic(topic: TopicImage, before: bytes | None = None) -> bytes:
    """Encode the value of /brokers/topics/T, over the stored value *before*; a topic without an id is written without one."""
    values: dict[str, Any] = {
        "partitions": {str(partition.partition): partition.replicas for partition in topic.partitions},
        "adding_replicas": {
            str(partition.partition): partition.adding_replicas
            for partition in topic.partitions
            if partition.adding_replicas
        },
        "removing_replicas": {
            str(partition.partition): partition.removing_replicas
            for partition in topic.partitions
            if partition.removing_replicas
        },
    }
    if topic.topic_id != ZERO_UUID:
        values = {"topic_id": format_uuid(topic.topic_id), **values}
    return TOPIC.encode(Znode.TOPIC.path(topic=topic.name), values, before)


def decode_topic(name: str, value: bytes) -> TopicAssignment:
    """Decode the value of /brokers/topics/T, of any version; raises StoreError."""
    return read_topic(parse_fields(Znode.TOPIC.path(topic=name), value))


def read_topic(fields: Fields) -> TopicAssignment:
    """Read a topic's parsed value; raises StoreError."""
    partitions = fields.nested("partitions")
    adding, removing = (fields.nested(name, {}) for name in ("adding_replicas", "removing_replicas"))
    assignments = (
        Assignment(partitions.node_ids(name), _read_optional(adding, name), _read_optional(removing, name))
        for name in map(str, partitions.partition_numbers())
    )
    return TopicAssignment(_read_topic_id(fields), tuple(assignments))


def _read_optional(replicas: Fields, name: str) -> tuple[int, ...]:
    return replicas.node_ids(name) if name in replicas.values else ()


def _read_topic_id(fields: Fields) -> bytes:
    text = fields.text("topic_id", "")
    if not text:
        return ZERO_UUID
    try:
        return parse_uuid(text)
    except ValueError as problem:
        raise build_damage_error(fields.path, f'"topic_id" is {quote_name(text)}, not an id') from problem


def encode_partition_state(
    topic: str, partition: PartitionImage, controller_epoch: int, before: bytes | None = None
) -> bytes:
    """Encode the value of /brokers/topics/T/partitions/N/state, over the stored value *before*."""
    values = (partition.leader, partition.leader_epoch, partition.in_sync_replicas, partition.is_recovering)
    if not before:
        return _encode_new_state(controller_epoch, *values)
    path = Znode.PARTITION_STATE.path(topic=topic, partition=partition.partition)
    return _STATE.encode(path, _list_state_fields(controller_epoch, *values), before)


@lru_cache
def _encode_new_state(
    controller_epoch: int, leader: int, leader_epoch: int, in_sync_replicas: tuple[int, ...], is_recovering: bool
) -> bytes:
    """Encode a state; cached, because most partitions of a new topic have the same one."""
    return _STATE.encode(
        "", _list_state_fields(controller_epoch, leader, leader_epoch, in_sync_replicas, is_recovering)
    )


def _list_state_fields(
    controller_epoch: int, leader: int, leader_epoch: int, in_sync_replicas: tuple[int, ...], is_recovering: bool
) -> Mapping[str, Any]:
    recovery = {"leader_recovery_state": _RECOVERING} if is_recovering else {}
    return {
        "controller_epoch": controller_epoch,
        "leader": leader,
        "leader_epoch": leader_epoch,
        "isr": in_sync_replicas,
        **recovery,
    }


def decode_partition_state(topic: str, partition: int, value: bytes) -> LeaderIsrAndControllerEpoch:
    """Decode the value of /brokers/topics/T/partitions/N/state; raises StoreError."""
    return parse_partition_state(Znode.PARTITION_STATE.path(topic=topic, partition=partition), value)[0]


def parse_partition_state(path: str, value: bytes) -> tuple[LeaderIsrAndControllerEpoch, bool]:
    """Parse the state at *path*, and return it and whether it is foreign (`Schema.is_foreign`); raises StoreError."""
    try:
        return _parse_state(value)
    except StoreError:
        # The message has to name the path.
        return _read_state(parse_fields(path, value))


@lru_cache(maxsize=1024)
def _parse_state(value: bytes) -> tuple[LeaderIsrAndControllerEpoch, bool]:
    """Parse a state; cached, because many partitions have the same one."""
    return _read_state(parse_fields("", value))


def _read_state(fields: Fields) -> tuple[LeaderIsrAndControllerEpoch, bool]:
    recovery_state = fields.integer("leader_recovery_state", _RECOVERED, low=_RECOVERED, high=_RECOVERING)
    state = LeaderIsrAndControllerEpoch(
        max(fields.integer("leader"), NO_LEADER),
        fields.integer("leader_epoch"),
        fields.node_ids("isr"),
        recovery_state == _RECOVERING,
        fields.integer("controller_epoch"),
    )
    return state, _STATE.is_foreign(fields)
