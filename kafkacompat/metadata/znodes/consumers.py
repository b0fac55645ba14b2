"""The values of the znodes below /consumers, where consumers up to 0.8.1 keep their offsets."""

from __future__ import annotations

from kafkacompat.metadata.znodes.paths import Znode, encode_group
from kafkacompat.metadata.znodes.values import INT64_MAX, parse_number


def format_offset_path(group_id: str, topic: str, partition: int) -> str:
    """Build the path of a group's offset in a partition."""
    return Znode.CONSUMER_OFFSET.path(group=encode_group(group_id), topic=topic, partition=partition)


def encode_consumer_offset(offset: int) -> bytes:
    """Encode the value of /consumers/G/offsets/T/N."""
    return b"%d" % offset


def decode_consumer_offset(path: str, value: bytes) -> int:
    """Decode the value of /consumers/G/offsets/T/N; raises StoreError."""
    return parse_number(path, value, low=-INT64_MAX - 1, high=INT64_MAX)
