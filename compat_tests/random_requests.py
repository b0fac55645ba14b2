"""Random requests made from their declarations. Many name existing topics, groups, configs and members."""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Iterable
from typing import Any

from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from compat_tests import batches
from kafkacompat.wire.schema import Field, Request, Struct
from tests.wire.random_messages import NUMBERS, Mode, make_message

LIKELY = 0.85
"""Probability that a field has a sensible value; otherwise it keeps a random value that its declaration allows."""
REMEMBERED = 30
"""Number of values of each kind that are kept from requests and responses."""
LEARNED = ("string", "uuid", "int16", "int32", "int64")

KINDS: dict[str, tuple[Any, ...]] = {
    "acks": (-1, 0, 1),
    "assignments": (),
    "broker_ids": (1,),
    "committed_offset": (0, 3, 10),
    "config_name": ("cleanup.policy", "min.insync.replicas", "retention.ms", "segment.bytes", "compression.type"),
    "config_operation": (0, 1, 2, 3),
    "count": (-1, 1, 2, 3, 4),
    "current_leader_epoch": (-1, 0, 1),
    "endpoint_type": (1, 2),
    "entity_type": ("user", "client-id", "ip"),
    "fetch_offset": (0, 1, 10),
    "generation_id": (-1, 0, 1, 2),
    "group_id": ("", "group-0", "group-1"),
    "group_instance_id": (None, "static-0", "static-1"),
    "isolation_level": (0, 1),
    "key_type": (0, 1, 2),
    "max_bytes": (0, 1, 1000, 1 << 20),
    "max_num_offsets": (0, 1, 2, 100),
    "member_id": ("",),
    "min_bytes": (0, 1, 1000),
    "name": ("topic-0", "topic-1", "topic-2", "topic-3", "topic-4", "topic.5", "__consumer_offsets"),
    "offset": (-1, 0, 1, 5),
    "operation": (0, 1, 2, 3),
    "partition_index": (0, 0, 0, 0, 1, 2, 3, -1),
    "partition_max_bytes": (0, 1, 1000, 1 << 20),
    "producer_epoch": (-1, 0),
    "producer_id": (-1, 0),
    "protocol_name": ("range", "sticky"),
    "protocol_type": ("consumer",),
    "replica_id": (-1, 1),
    "replication_factor": (-1, 1),
    "resource_name": ("topic-0", "topic-1", "topic.5", "1", "", "group-0", "subscription"),
    "resource_type": (2, 4, 8, 16, 32),
    "session_epoch": (-1, 0, 1, 2),
    "session_id": (0,),
    "states_filter": ("Stable", "Empty", "Dead"),
    "timestamp": (-1, -2, -3, -4, batches.RECENT_MS),
    "topic_id": (),
    "transactional_id": (None, None, None, "transactions"),
    "types_filter": ("classic", "consumer"),
    "value": ("-1", "0", "1", "1000", "1048576", "true", "compact", "delete", "zstd", ""),
}
"""Sensible values by the name of a field; requests and responses add more."""

SAME_KIND = {
    "AlterableConfig.name": "config_name",
    "CreatableTopicConfig.name": "config_name",
    "DescribeConfigsResourceResult.name": "config_name",
    "JoinGroupRequestProtocol.name": "protocol_name",
    "broker_id": "broker_ids",
    "coordinator_keys": "group_id",
    "generation_id_or_member_epoch": "generation_id",
    "groups": "group_id",
    "groups_names": "group_id",
    "index": "partition_index",
    "key": "group_id",
    "configuration_keys": "config_name",
    "leader_epoch": "current_leader_epoch",
    "log_dir": "path",
    "node_id": "broker_ids",
    "num_partitions": "count",
    "partition": "partition_index",
    "partition_indexes": "partition_index",
    "partitions": "partition_index",
    "replicas": "broker_ids",
    "resource_types": "resource_type",
    "topic": "name",
    "topic_name": "name",
    "topic_names": "name",
}
"""Fields that hold the same as others, by the name of the others; a field of one struct alone by both names."""

BOUNDED = {
    "max_wait_ms": (-1, 0, 1, 30),
    "rebalance_timeout_ms": (-1, 0, 1, 200),
    "session_timeout_ms": (-1, 1, 50, 300),
    "timeout_ms": (-1, 0, 100),
}
"""Fields that bound the time of a response. They are never random: a long wait would hold up all later requests."""

PROTECTED = re.compile(
    r"(advertised\.)?listener.*|max\.connections.*|(message\.max|max\.message|internal\.segment)\.bytes"
    r"|cordoned\.log\.dirs"
    r"|\(root\)|root|twisted.*|kafkacompat.*"
)
"""Configs and loggers that no request changes. A change would shut clients out, prevent the creation of topics, keep
defects out of the log, or leave no room for commits, which the broker reports as UNKNOWN_SERVER_ERROR."""


class RequestMaker:
    """Makes random requests, and learns names and ids from responses."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._learned: dict[str, deque[object]] = {}
        self._goes_on = False

    def make(self, cls: type[Request], version: int, *, goes_on: float = 0.3) -> Request:
        """Make a well-formed request; with probability *goes_on* it continues with the values that were learned last."""
        mode = self._rng.choice((*Mode, *(Mode.RANDOM,) * 5))
        request = make_message(cls, version, self._rng, mode)
        self._goes_on = self._rng.random() < goes_on
        self._improve(request, version)
        assert isinstance(request, cls)
        return request

    def learn(self, message: Struct) -> None:
        """Remember the values of a response, or of a request that succeeded."""
        for name, field in type(message).FIELDS.items():
            value = getattr(message, name)
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, Struct):
                    self.learn(item)
                elif (field.element or field).kind in LEARNED:
                    self._learned.setdefault(_find_kind(type(message), name), deque(maxlen=REMEMBERED)).append(item)

    def _improve(self, message: Struct, version: int) -> None:
        cls = type(message)
        for name, field in cls.FIELDS.items():
            if version in field.versions:
                setattr(message, name, self._better(cls, name, field, getattr(message, name), version))

    def _better(self, cls: type[Struct], name: str, field: Field, value: Any, version: int) -> Any:
        """Something more sensible in the place of a random value, or the value."""
        if isinstance(value, list):
            assert field.element is not None
            some = value if self._rng.random() < LIKELY else []
            return [self._better(cls, name, field.element, item, version) for item in some]
        if isinstance(value, Struct):
            assert field.struct is not None
            improved = field.struct(**vars(value))  # a default is shared and cannot be changed
            self._improve(improved, version)
            return improved
        if name in BOUNDED:
            return self._rng.choice(BOUNDED[name])
        if field.kind == "records":
            return self._records(version)
        likely = [
            candidate for candidate in self._likely(_find_kind(cls, name)) if _fits_field(candidate, field, version)
        ]
        if likely and self._rng.random() < LIKELY:
            value = self._rng.choice(likely)
        return "protected" if isinstance(value, str) and PROTECTED.fullmatch(value) else value

    def _likely(self, kind: str) -> Iterable[object]:
        learned = self._learned.get(kind, ())
        if learned and self._goes_on:
            return [learned[-1]]
        return learned if learned and self._rng.random() < 0.3 else KINDS.get(kind, ())

    def _records(self, version: int) -> bytes:
        """A record batch or message set, as it should be or not."""
        count = self._rng.randint(1, 5)
        values = [self._rng.randbytes(self._rng.choice((0, 10, 1000))) for _ in range(count)]
        data = bytearray(self._message_set(values, version) if version < 3 else self._batch(values))
        if self._rng.random() < 0.3:
            data[self._rng.randrange(len(data))] ^= 1 << self._rng.randrange(8)
        if self._rng.random() < 0.3 and version >= 3:
            data = bytearray(batches.with_crc(data))
        return bytes(data[: self._rng.choice((None, None, None, None, self._rng.randrange(len(data))))])

    def _batch(self, values: list[bytes]) -> bytes:
        identity: dict[str, Any] = {}
        if self._rng.random() < 0.3:
            producer_id = self._rng.choice([-1, 0, *self._learned.get("producer_id", ())])
            identity = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
        codec = self._rng.choice((0, 0, batches.GZIP, batches.SNAPPY, batches.LZ4, batches.ZSTD))
        return batches.build(values, codec=codec, **identity)

    def _message_set(self, values: list[bytes], version: int) -> bytes:
        codec = self._rng.choice((0, 0, batches.GZIP, batches.SNAPPY))
        builder: Any = LegacyRecordBatchBuilder(magic=int(version == 2), compression_type=codec, batch_size=1 << 20)
        for offset, value in enumerate(values):
            builder.append(offset, timestamp=batches.RECENT_MS, key=b"key", value=value)
        return bytes(builder.build())


def _find_kind(cls: type[Struct], name: str) -> str:
    return SAME_KIND.get(f"{cls.__name__}.{name}") or SAME_KIND.get(name, name)


def _fits_field(value: object, field: Field, version: int) -> bool:
    """Whether a value can be written in a field."""
    if value is None:
        return version in field.nullable
    if isinstance(value, str):
        return field.kind == "string"
    if isinstance(value, bytes):
        return field.kind == "uuid"
    low, high = NUMBERS.get(field.kind, (1, 0))
    return type(value) is int and low <= value <= high
