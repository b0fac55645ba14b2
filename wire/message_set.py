"""Reads and writes message sets of formats 0 and 1, which Kafka used before record batches (0.11).

A set is a sequence of entries (offset int64, size int32, message). A message is crc uint32 (zlib's, of all bytes after it),
magic int8, attributes int8, in format 1 a timestamp int64, then key and value, each with an int32 length, -1 for null.
A compressed set is one message, the *wrapper*, whose value is another set. The inner offsets are absolute in format 0 and
relative to the first one in format 1; the wrapper has the offset of the last one.
(https://kafka.apache.org/39/documentation.html#messageset)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias
from zlib import crc32

from kafkacompat.wire.batch_check import InvalidRecordsError
from kafkacompat.wire.batch_header import CODEC_MASK, LOG_APPEND_TIME
from kafkacompat.wire.compression import Codec, compress, decompress
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.lz4_checksum import use_old_checksum, use_specified_checksum
from kafkacompat.wire.primitives import Buffer

NO_TIMESTAMP = -1
MAGIC_POSITION = 16
"""Position of the format version, in an entry and in a record batch alike."""

_ENTRY = struct.Struct(">qi")
_START = struct.Struct(">Ibb")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_MAGIC_AT = 4
# crc, magic, attributes, both lengths, and in format 1 the timestamp.
_SMALLEST = {0: 14, 1: 22}


class LegacyMessage(NamedTuple):
    """One entry of a set, with its ``offset`` and ``timestamp`` (ms, -1 for none) as stored."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether the timestamp is the broker's append time; in format 0 the bit has no meaning."""
        return bool(self.magic and self.attributes & LOG_APPEND_TIME)


def read_message_set(data: Buffer, max_message_bytes: int | None = None) -> Iterator[LegacyMessage]:
    """Yield the entries of a set, wrappers as they are.

    Raises KafkaError: CORRUPT_MESSAGE for an invalid entry or a wrong CRC, MESSAGE_TOO_LARGE for an entry of more than
    *max_message_bytes*, INVALID_RECORD if the key, the value or the last entry is cut off.
    """
    view = memoryview(data)
    position = 0
    while position < len(view):
        if len(view) - position < _ENTRY.size:
            raise build_invalid_error("the last entry of a message set is cut off")
        offset, size_bytes = _ENTRY.unpack_from(view, position)
        position += _ENTRY.size
        if max_message_bytes is not None and size_bytes + _ENTRY.size > max_message_bytes:
            detail = (
                f"a message of {size_bytes + _ENTRY.size} bytes is larger than max.message.bytes={max_message_bytes}"
            )
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, detail)
        yield _read_message(view[position : position + max(0, size_bytes)], offset, size_bytes)
        position += size_bytes


def _read_message(message: memoryview, offset: int, size_bytes: int) -> LegacyMessage:
    if size_bytes < _SMALLEST[0]:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a message claims the impossible size of {size_bytes} bytes")
    if len(message) < size_bytes:
        raise build_invalid_error("the last entry of a message set is cut off")
    crc, magic, attributes = _START.unpack_from(message)
    if magic not in _SMALLEST or size_bytes < _SMALLEST[magic]:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a message of {size_bytes} bytes has the invalid format {magic}")
    if crc32(message[_MAGIC_AT:]) != crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a message does not match its CRC")
    position, timestamp = _START.size, NO_TIMESTAMP
    if magic:
        (timestamp,) = _INT64.unpack_from(message, position)
        position += _INT64.size
    key, position = _read_sized(message, position)
    value, position = _read_sized(message, position)
    if position != size_bytes:
        raise build_invalid_error(f"key and value end {size_bytes - position} bytes before their message")
    return LegacyMessage(offset, magic, attributes, timestamp, key, value)


def _read_sized(message: memoryview, position: int) -> tuple[bytes | None, int]:
    if len(message) - position < _INT32.size:
        raise build_invalid_error("a message has no room for the length of its key or value")
    (size_bytes,) = _INT32.unpack_from(message, position)
    position += _INT32.size
    if size_bytes < 0:
        return None, position
    if size_bytes > len(message) - position:
        raise build_invalid_error(f"a key or value claims {size_bytes} bytes, but {len(message) - position} are left")
    return bytes(message[position : position + size_bytes]), position + size_bytes


def unwrap_messages(wrapper: LegacyMessage, max_bytes: int) -> Iterator[LegacyMessage]:
    """Yield the messages of a wrapper, with the wrapper's timestamp type, and its timestamp if that is the append time.

    Offsets stay as stored. Raises KafkaError as `read_message_set` does, INVALID_RECORD for an invalid wrapper (its format lacks
    the codec, it is empty, or it holds another wrapper), and MalformedError if it is larger than *max_bytes* when uncompressed.
    """
    if not Codec.NONE < wrapper.codec < Codec.ZSTD or wrapper.value is None:
        raise build_invalid_error(
            f"a message of format {wrapper.magic} with codec {wrapper.codec} holds no message set"
        )
    last_offset = None
    for message in read_message_set(_decompress_value(wrapper, wrapper.value, max_bytes)):
        if message.magic != wrapper.magic or message.codec:
            raise build_invalid_error(
                f"a compressed message set contains format {message.magic} or codec {message.codec}"
            )
        last_offset = message.offset
        timestamp = wrapper.timestamp if wrapper.is_log_append_time else message.timestamp
        yield message._replace(timestamp=timestamp, attributes=wrapper.attributes & LOG_APPEND_TIME)
    if last_offset is None:
        raise build_invalid_error("a compressed message set is empty")
    # Some versions of librdkafka set no offset in the wrapper.
    if wrapper.magic and 0 != wrapper.offset < last_offset:
        raise build_invalid_error(
            f"a compressed message set has offset {wrapper.offset}, less than its last message's {last_offset}"
        )


def _decompress_value(wrapper: LegacyMessage, value: bytes, max_bytes: int) -> bytes:
    if wrapper.codec == Codec.LZ4 and wrapper.magic == 0:
        value = use_specified_checksum(value)
    return decompress(wrapper.codec, value, max_bytes)


def build_invalid_error(detail: str) -> InvalidRecordsError:
    """Return the error for a violation of the format."""
    return InvalidRecordsError(ErrorCode.INVALID_RECORD, detail)


WriteMessage: TypeAlias = "Callable[[int, int, bytes | None, bytes | None], bytes]"
"""(offset, timestamp, key, value) -> one entry of a message set."""

_V0_START, _V1_START = struct.Struct(">qiIbbi"), struct.Struct(">qiIbbqi")
_V0_CHECKED, _V1_CHECKED = struct.Struct(">bbi"), struct.Struct(">bbqi")
_NULL = _INT32.pack(-1)


def make_entry_writer(magic: int, attributes: int) -> WriteMessage:
    """Return a function that writes entries of a format; format 0 stores no timestamp and no timestamp type."""
    return _make_v1_writer(attributes) if magic else _make_v0_writer(attributes & CODEC_MASK)


def _make_v0_writer(attributes: int) -> WriteMessage:
    checked, start = _V0_CHECKED.pack, _V0_START.pack

    def write(offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
        rest = _encode_key_and_value(key, value)
        key_size = -1 if key is None else len(key)
        crc = crc32(rest, crc32(checked(0, attributes, key_size)))
        return start(offset, len(rest) + 10, crc, 0, attributes, key_size) + rest

    return write


def _make_v1_writer(attributes: int) -> WriteMessage:
    checked, start = _V1_CHECKED.pack, _V1_START.pack

    def write(offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
        rest = _encode_key_and_value(key, value)
        key_size = -1 if key is None else len(key)
        crc = crc32(rest, crc32(checked(1, attributes, timestamp, key_size)))
        return start(offset, len(rest) + 18, crc, 1, attributes, timestamp, key_size) + rest

    return write


def _encode_key_and_value(key: bytes | None, value: bytes | None) -> bytes:
    """Encode the bytes after the length of the key."""
    sized_value = _NULL if value is None else _INT32.pack(len(value)) + value
    return key + sized_value if key else sized_value


def wrap_messages(magic: int, attributes: int, last_offset: int, timestamp: int, messages: Buffer) -> bytes:
    """Write the one entry that holds a message set, compressed with the codec in *attributes*."""
    packed = compress(attributes & CODEC_MASK, messages)
    if attributes & CODEC_MASK == Codec.LZ4 and magic == 0:
        packed = use_old_checksum(packed)
    return make_entry_writer(magic, attributes)(last_offset, timestamp, None, packed)
