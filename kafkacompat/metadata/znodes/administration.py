"""The values of znodes by which tools ask the controller for something, and by which brokers notify it.

The znodes /admin/delete_topics/T have no value; a tool or a broker creates them, and the controller deletes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.znodes.values import Fields, encode_json, parse_fields

TopicPartition = tuple[str, int]
"""A topic's name and a partition's number."""

_VERSION = 1
_LOG_DIR_FAILURE = 1


def encode_reassignment(replicas: Mapping[TopicPartition, Collection[int]]) -> bytes:
    """Encode the value of /admin/reassign_partitions: the replicas that partitions shall have."""
    partitions = [
        {"topic": topic, "partition": partition, "replicas": list(node_ids)}
        for (topic, partition), node_ids in replicas.items()
    ]
    return encode_json({"version": _VERSION, "partitions": partitions})


def decode_reassignment(value: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Decode the value of /admin/reassign_partitions; raises StoreError."""
    fields = parse_fields(Znode.REASSIGNMENT.path(), value)
    return {_read_partition(item): item.node_ids("replicas") for item in fields.nested_list("partitions")}


def decode_preferred_election(value: bytes) -> set[TopicPartition]:
    """Decode the value of /admin/preferred_replica_election: the partitions to elect leaders for; raises StoreError."""
    return _read_partitions(parse_fields(Znode.PREFERRED_ELECTION.path(), value))


def decode_isr_change(path: str, value: bytes) -> set[TopicPartition]:
    """Decode the value of /isr_change_notification/isr_change_; raises StoreError."""
    return _read_partitions(parse_fields(path, value))


def encode_log_dir_event(node_id: int) -> bytes:
    """Encode the value of /log_dir_event_notification/log_dir_event_: a log directory of this broker has failed."""
    return encode_json({"version": _VERSION, "broker": node_id, "event": _LOG_DIR_FAILURE})


def decode_log_dir_event(path: str, value: bytes) -> int:
    """Decode the value of /log_dir_event_notification/log_dir_event_ and return the broker's id; raises StoreError."""
    return parse_fields(path, value).integer("broker", low=0)


def _read_partitions(fields: Fields) -> set[TopicPartition]:
    return {_read_partition(item) for item in fields.nested_list("partitions")}


def _read_partition(fields: Fields) -> TopicPartition:
    return fields.text("topic"), fields.integer("partition", low=0)
