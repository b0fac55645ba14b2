"""The checksum in the header of an LZ4 frame, which clients of message format 0 compute wrongly.

It is one byte of the XXH32 of the frame's descriptor. The first Java client that wrote LZ4 (0.8.2) included the four bytes
before the descriptor (KAFKA-3160); since message format 1 it follows LZ4's specification. In format 0 only those old clients
check it, and they reject a frame with the correct one.
"""

from __future__ import annotations

from kafkacompat.wire.primitives import Buffer, MalformedError

_MAGIC_BYTES = 4
_FLAGS_AT, _SIZE_AT = 4, 6
_HAS_CONTENT_SIZE = 0x08
_HAS_DICTIONARY = 0x01
_CONTENT_SIZE_BYTES = 8

_MASK = 0xFFFFFFFF
_PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
_PRIME_1 = 0x9E3779B1
_MAX_SHORT_BYTES = 15


def use_specified_checksum(frame: Buffer) -> bytes:
    """Return the frame with the checksum of LZ4's specification; raises MalformedError when it is cut off."""
    return _with_checksum(frame, _MAGIC_BYTES)


def use_old_checksum(frame: Buffer) -> bytes:
    """Return the frame with the checksum that clients of message format 0 write and expect."""
    return _with_checksum(frame, 0)


def _with_checksum(frame: Buffer, covered_from: int) -> bytes:
    if len(frame) <= _SIZE_AT:
        raise MalformedError("an LZ4 frame is cut off")
    flags = frame[_FLAGS_AT]
    at = _SIZE_AT + (_CONTENT_SIZE_BYTES if flags & _HAS_CONTENT_SIZE else 0)
    if flags & _HAS_DICTIONARY or len(frame) <= at:
        raise MalformedError("an LZ4 frame needs a dictionary or is cut off")
    changed = bytearray(frame)
    changed[at] = short_xxh32(bytes(frame[covered_from:at])) >> 8 & 0xFF
    return bytes(changed)


def short_xxh32(data: bytes) -> int:
    """Return the XXH32 with seed 0 of less than 16 bytes; https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md."""
    assert len(data) <= _MAX_SHORT_BYTES
    value = _PRIME_5 + len(data) & _MASK
    whole = len(data) // 4 * 4
    for position in range(0, whole, 4):
        lane = int.from_bytes(data[position : position + 4], "little")
        value = _rotate_left(value + lane * _PRIME_3, 17) * _PRIME_4 & _MASK
    for byte in data[whole:]:
        value = _rotate_left(value + byte * _PRIME_5, 11) * _PRIME_1 & _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _rotate_left(value: int, bits: int) -> int:
    value &= _MASK
    return value << bits & _MASK | value >> (32 - bits)
