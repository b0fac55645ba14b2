"""How Kafka's coordinators write messages as keys and values of records: an int16 first, then the message.

In a key the int16 is the kind of the record, in a value the version that the message is written in. A null value deletes.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from kafkacompat.wire.compiler import decode_message, encode_message
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.schema import Message

_MessageType = TypeVar("_MessageType", bound=Message)
_PREFIX = struct.Struct(">h")
_KEY_VERSION = 0


def encode_key(kind: int, key: Message) -> bytes:
    """Return a key as it is in the log."""
    return _PREFIX.pack(kind) + encode_message(key, _KEY_VERSION)


def decode_key(message: type[_MessageType], data: Buffer) -> _MessageType:
    """Read the key that follows a kind; raises MalformedError."""
    return decode_message(message, data, _KEY_VERSION)


def encode_value(value: Message, version: int) -> bytes:
    """Return a value as it is in the log."""
    return _PREFIX.pack(version) + encode_message(value, version)


def decode_value(message: type[_MessageType], data: Buffer) -> _MessageType:
    """Read a value; raises MalformedError, also for a version that the message does not have."""
    version, rest = split_prefix(data)
    if version not in message.VERSIONS:
        raise MalformedError(f"{message.__name__} has no version {version}")
    return decode_message(message, rest, version)


def split_prefix(data: Buffer) -> tuple[int, Buffer]:
    """Return the int16 that *data* begins with, and the bytes after it. Raises MalformedError."""
    if len(data) < _PREFIX.size:
        raise MalformedError(f"a record of {len(data)} bytes has no room for its version")
    return _PREFIX.unpack_from(data)[0], data[_PREFIX.size :]
