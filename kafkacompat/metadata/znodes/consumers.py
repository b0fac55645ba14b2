"""The values of the znodes below /consumers, where consumers up to 0.8.1 keep their offsets and divide partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafkacompat.metadata.znodes.paths import Znode, encode_group
from kafkacompat.metadata.znodes.values import INT64_MAX, parse_fields, parse_number, parse_text


class ConsumerRegistration(NamedTuple):
    """A consumer's subscription: its streams by topic, or by the pattern of topics ("white_list", "black_list")."""

    streams: Mapping[str, int]
    pattern: str


def format_offset_path(group_id: str, topic: str, partition: int) -> str:
    """Build the path of a group's offset in a partition."""
    return Znode.CONSUMER_OFFSET.path(group=encode_group(group_id), topic=topic, partition=partition)


def encode_consumer_offset(offset: int) -> bytes:
    """Encode the value of /consumers/G/offsets/T/N."""
    return b"%d" % offset


def decode_consumer_offset(path: str, value: bytes) -> int:
    """Decode the value of /consumers/G/offsets/T/N; raises StoreError."""
    return parse_number(path, value, low=-INT64_MAX - 1, high=INT64_MAX)


def decode_consumer_owner(path: str, value: bytes) -> str:
    """Decode the value of /consumers/G/owners/T/N and return the consumer's thread, "<consumer>-<number>"; raises StoreError."""
    return parse_text(path, value)


def decode_consumer(path: str, value: bytes) -> ConsumerRegistration:
    """Decode the value of /consumers/G/ids/C; raises StoreError."""
    fields = parse_fields(path, value)
    subscription = fields.nested("subscription")
    streams = {topic: subscription.integer(topic, low=0) for topic in subscription.values}
    return ConsumerRegistration(streams, fields.text("pattern", "static"))
