"""The header that serializers of schema registries put before a value (Confluent's wire format): a 0, an id of 4 bytes."""

from __future__ import annotations

from typing import NamedTuple

from spark_integration.validate.dead import DeadLetterError

HEADER_BYTES = 5
MOST_VARINT_BYTES = 10
MOST_INDEXES = 100


class FramedValue(NamedTuple):
    """The id in the header of a value, and the bytes after it."""

    schema_id: int
    payload: bytes


def split_frame(value: bytes) -> FramedValue:
    """Split a value into header and payload; raises DeadLetterError."""
    if len(value) < HEADER_BYTES or value[0] != 0:
        raise DeadLetterError("no-schema-id", f"begins with {value[:HEADER_BYTES].hex() or 'nothing'}, not with 00")
    return FramedValue(int.from_bytes(value[1:HEADER_BYTES], "big"), value[HEADER_BYTES:])


def split_message_indexes(payload: bytes) -> tuple[tuple[int, ...], bytes]:
    """Split a Protobuf payload into the path of its message within the schema and the message; raises DeadLetterError.

    The path is a count and as many indexes, each a zigzag varint; a count of 0 stands for the first message.
    """
    count, position = _read_zigzag(payload, 0)
    if not 0 <= count <= MOST_INDEXES:
        raise DeadLetterError("malformed", f"has {count} message indexes")
    indexes = []
    for _ in range(count):
        index, position = _read_zigzag(payload, position)
        indexes.append(index)
    return tuple(indexes) or (0,), payload[position:]


def _read_zigzag(payload: bytes, position: int) -> tuple[int, int]:
    number = 0
    for count, byte in enumerate(payload[position : position + MOST_VARINT_BYTES]):
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position + count + 1
    raise DeadLetterError("malformed", "ends within the message indexes")
