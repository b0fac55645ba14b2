"""The protocol's variable-length integers, ids and their text form, and the error that every reader raises.

Two families exist side by side: *unsigned* varints carry lengths and tags of flexible
messages (KIP-482), *zig-zag* varints carry everything inside a record of a v2 batch.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Container
from random import Random
from typing import TypeAlias

Buffer: TypeAlias = "bytes | bytearray | memoryview"

ZERO_UUID = bytes(16)
"""Kafka's "no id"."""

MIN_INT32 = -0x80000000
MAX_INT32 = 0x7FFFFFFF
MIN_INT64 = -0x8000000000000000
MAX_INT64 = 0x7FFFFFFFFFFFFFFF

MAX_VARINT_BYTES = 5
MAX_VARLONG_BYTES = 10
_VARINT_SHIFTS = tuple(range(0, 7 * MAX_VARINT_BYTES, 7))


class MalformedError(ValueError):
    """The bytes violate the protocol."""


def read_uvarint(data: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most five bytes; return (value, next position).

    Raises MalformedError if the bytes end early or the number exceeds 32 bits.
    """
    value = 0
    try:
        for shift in _VARINT_SHIFTS:
            byte = data[position]
            position += 1
            if byte < 0x80:
                value |= byte << shift
                if value > 0xFFFFFFFF:
                    break
                return value, position
            value |= (byte & 0x7F) << shift
    except IndexError:
        raise MalformedError(f"a varint is cut off at byte {position}") from None
    raise MalformedError(f"a varint at byte {position - MAX_VARINT_BYTES} is longer than 32 bits")


def encode_uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = [bytes((value,)) for value in range(0x80)]


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Read a zig-zag varint of at most five bytes; return (value, next position). As in Kafka, bits beyond 32 are dropped.

    Raises MalformedError when the bytes end early or there are more of them.
    """
    value, position = _read_bits(data, position, MAX_VARINT_BYTES)
    value &= 0xFFFFFFFF
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """Read a zig-zag varlong of at most ten bytes; return (value, next position). As in Kafka, bits beyond 64 are dropped.

    Raises MalformedError when the bytes end early or there are more of them.
    """
    value, position = _read_bits(data, position, MAX_VARLONG_BYTES)
    value &= 0xFFFFFFFFFFFFFFFF
    return (value >> 1) ^ -(value & 1), position


def _read_bits(data: Buffer, position: int, max_bytes: int) -> tuple[int, int]:
    value = shift = 0
    for _ in range(max_bytes):
        if position >= len(data):
            raise MalformedError(f"a varint is cut off at byte {position}")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise MalformedError(f"a varint at byte {position - max_bytes} has more than {max_bytes} bytes")


def read_short_varint(
    data: bytes, position: int, read_longer: Callable[[Buffer, int], tuple[int, int]] = read_varint
) -> tuple[int, int]:
    """Read a zig-zag varint, fast for one and two bytes; *read_longer* reads the others.

    Raises IndexError when the first two bytes are cut off, MalformedError as *read_longer*.
    """
    first = data[position]
    if first < 0x80:
        return (first >> 1) ^ -(first & 1), position + 1
    second = data[position + 1]
    if second < 0x80:
        return (first >> 1 & 0x3F | second << 6) ^ -(first & 1), position + 2
    return read_longer(data, position)


def encode_varint(value: int) -> bytes:
    """Encode a zig-zag varint or varlong (64-bit signed at most)."""
    return encode_uvarint((value << 1) ^ (value >> 63))


def new_uuid(rng: Random, taken: Container[bytes] = ()) -> bytes:
    """Return a random UUID (version 4, as Kafka's) that is not taken and whose text does not begin with '-'.

    On a command line, a leading '-' would make an id an option.
    """
    while True:
        bits = rng.getrandbits(128) & ~(0xF << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62
        uuid = bits.to_bytes(16, "big")
        if uuid[0] >> 2 != 62 and uuid not in taken:
            return uuid


def format_uuid(uuid: bytes) -> str:
    """Return a UUID as Kafka writes it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")


def parse_uuid(text: str) -> bytes:
    """Parse the form that `format_uuid` returns; raises ValueError."""
    uuid = base64.urlsafe_b64decode(text + "==")
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is no UUID")
    return uuid
