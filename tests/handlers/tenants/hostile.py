"""Requests made up from their declarations, of names that a client may know, guess or choose to do harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from kafkacompat.wire import entities
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.apis.create_topics import CreatableTopicConfig
from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    write_assignment,
    write_subscription,
)
from kafkacompat.wire.primitives import ZERO_UUID
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.wire.schema import Field, Request, Struct

MAX_ELEMENTS = 2
NULL_SHARE = 0.25
START_MS = 1_700_000_000_000

# By the name of a field: numbers that a handler takes, and some that it rejects.
NUMBERS: Mapping[str, Sequence[int]] = {
    "timeout_ms": (1000,),
    "max_wait_ms": (0,),
    "min_bytes": (0, 1),
    "max_bytes": (1 << 20, 1 << 20, 0),
    "partition_max_bytes": (1 << 20,),
    "acks": (-1, 1, 0),
    "partition_index": (0, 0, 1, 7, -1),
    "partition": (0, 0, 1, 7, -1),
    "index": (0, 0, 1, 7),
    "partitions": (0, 1, 7),
    "partition_indexes": (0, 1, 7),
    "num_partitions": (1, 1, 2, -1, 0),
    "count": (2, 3, 0),
    "replication_factor": (1, 1, -1, 3),
    "broker_ids": (1, 1, 2),
    "session_timeout_ms": (10_000, 1),
    "rebalance_timeout_ms": (500,),
    "transaction_timeout_ms": (60_000, 60_000, 0),
    "generation_id": (1, 1, -1, 2),
    "generation_id_or_member_epoch": (-1, -1, 1),
    "member_epoch": (0, 0, 1, -1),
    "producer_epoch": (0, 0, 1, -1),
    "isolation_level": (0, 1),
    "key_type": (0, 1, 2, 9),
    "election_type": (0, 1, 5),
    "endpoint_type": (1, 1, 2, 9),
    "session_epoch": (-1, 0, 1, 2),
    "replica_id": (-1, -1, -1, 1),
    "replica_epoch": (-1,),
    "current_leader_epoch": (-1, -1, 0, 5),
    "leader_epoch": (0, 0, 5),
    "fetch_offset": (0, 0, 1, 99),
    "committed_offset": (0, 1, 42),
    "committed_leader_epoch": (-1, 0),
    "commit_timestamp": (-1,),
    "retention_time_ms": (-1,),
    "timestamp": (-1, -2, 0),
    "max_num_offsets": (1,),
    "offset": (0, 1, -1),
    "response_partition_limit": (2000, 1),
    "duration_filter": (-1, 1 << 40),
    "coordinator_epoch": (0, 5),
    "transaction_version": (0, 1),
    "last_fetched_epoch": (-1,),
    "log_start_offset": (-1,),
}
TEXTS: Mapping[str, Sequence[str]] = {
    "protocol_type": ("consumer", "consumer", "connect", ""),
    "protocol_name": ("range", "range", ""),
    "client_software_name": ("client",),
    "client_software_version": ("1.0",),
    "states_filter": ("Stable", "Empty", "Lost"),
    "types_filter": ("classic", "consumer", "share"),
    "state_filters": ("Ongoing", "Empty", "Lost"),
    "server_assignor": ("uniform", "range", "none"),
    "group_instance_id": ("static",),
    "instance_id": ("static",),
    "committed_metadata": ("note",),
    "mechanism": ("PLAIN",),
    "rack_id": ("rack",),
    "reason": ("reason",),
}
CONFIGS = (
    ("cleanup.policy", "compact"),
    ("retention.ms", "1000"),
    ("retention.ms", "nonsense"),
    ("no.such.config", "1"),
)

Pool = Mapping[str, Sequence[Any]]
"""By kind: what to draw from; two worlds draw the same when their pools have the same lengths."""


class RequestMaker:
    """Makes up requests; *pools* has the names by entity, and by the names of other fields."""

    def __init__(self, rng: Random, pools: Pool) -> None:
        self._rng = rng
        self._pools = pools
        self._version = 0

    def make(self, api_key: int, version: int) -> Request:
        """Return a request of one version."""
        self._version = version
        request = self._make_struct(find_api(api_key).request)
        assert isinstance(request, Request)
        return request

    def _make_struct(self, cls: type[Struct]) -> Struct:
        if cls is CreatableTopicConfig:
            name, value = self._rng.choice(CONFIGS)
            return CreatableTopicConfig(name=name, value=value)
        fields = {name: field for name, field in cls.FIELDS.items() if self._version in field.versions}
        return cls(**{name: self._make_value(name, field) for name, field in fields.items()})

    def _make_value(self, name: str, field: Field) -> Any:
        if self._version in field.nullable and self._rng.random() < NULL_SHARE:
            return None
        if field.element is not None:
            entity = field.element.entity or field.entity
            return [
                self._make_leaf(name, field.element, entity) for _ in range(self._rng.choice((0, 1, 1, MAX_ELEMENTS)))
            ]
        return self._make_leaf(name, field, field.entity)

    def _make_leaf(self, name: str, field: Field, entity: str | None) -> Any:
        if field.struct is not None:
            return self._make_struct(field.struct)
        name = name.removeprefix("v3_and_below_")
        for key in (entity, name):
            if key is not None and self._pools.get(key):
                return self._rng.choice(self._pools[key])
        return self._make_plain(name, field.kind, entity)

    def _make_plain(self, name: str, kind: str, entity: str | None) -> Any:
        rng = self._rng
        if kind == "string":
            return rng.choice(TEXTS.get(name, ("text",)))
        if kind == "bool":
            return rng.random() < 0.5
        if kind == "uuid":
            return ZERO_UUID
        if kind == "records":
            return build_batch([(START_MS, b"key", b"value", [])])
        if kind == "bytes":
            return self._make_bytes(entity)
        if kind == "float64":
            return 1.0
        return rng.choice(NUMBERS.get(name, (0, 1)))

    def _make_bytes(self, entity: str | None) -> bytes:
        topics = [self._rng.choice(self._pools[entities.TOPIC]) for _ in range(2)]
        if self._rng.random() < 0.2:
            return bytes(self._rng.choices(range(256), k=9))
        if entity == entities.SUBSCRIPTION:
            owned = [TopicPartition(topic=topics[0], partitions=[0])]
            return write_subscription(ConsumerProtocolSubscription(topics=topics, owned_partitions=owned), 1)
        if entity == entities.ASSIGNMENT:
            assigned = [TopicPartition(topic=topic, partitions=[0, 1]) for topic in topics]
            return write_assignment(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)
        return b"bytes"
