"""Converts message sets of old producers up to record batches, and record batches down for old consumers.

The functions keep no state, so any process can run them. The rules are those of Kafka 3.9, the last release that converts
(KIP-724 removed it from 4.0). Down-conversion drops record headers, and timestamps in format 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from kafkacompat.wire import batch_records
from kafkacompat.wire.batch_header import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    MAGIC_V2,
    BatchHeader,
    assemble_batch,
    crc_matches,
    read_header,
    split_batches,
)
from kafkacompat.wire.compression import Codec, TooLargeError, compress
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.message_set import (
    MAGIC_POSITION,
    NO_TIMESTAMP,
    LegacyMessage,
    build_invalid_error,
    make_entry_writer,
    read_message_set,
    unwrap_messages,
    wrap_messages,
)
from kafkacompat.wire.primitives import Buffer, MalformedError, read_short_varint, read_varlong

_ATTRIBUTES_POSITION = MAGIC_POSITION + 1


class SizeLimits(NamedTuple):
    """A topic's limits: the most bytes of one message or wrapper, and of its uncompressed contents."""

    max_message_bytes: int
    max_decompressed_bytes: int


class TargetCodec(NamedTuple):
    """The codec to write, or None for the producer's; ``levels`` holds the configured levels by codec."""

    codec: int | None
    levels: Mapping[int, int]


def is_message_set(records: Buffer) -> bool:
    """Return whether *records* is a message set; many producers send record batches in old requests, too."""
    return len(records) <= MAGIC_POSITION or records[MAGIC_POSITION] < MAGIC_V2


def is_compressed(message_set: Buffer) -> bool:
    """Return whether the first message is a wrapper."""
    return len(message_set) > _ATTRIBUTES_POSITION and bool(message_set[_ATTRIBUTES_POSITION] & CODEC_MASK)


def up_convert(records: Buffer, target: TargetCodec, limits: SizeLimits) -> bytes:
    """Convert a message set to one record batch, whose offsets count from 0.

    Raises KafkaError: CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP, INVALID_RECORD.
    """
    try:
        return _up_convert(records, target, limits)
    except TooLargeError as problem:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, str(problem)) from None
    except MalformedError as problem:
        raise build_invalid_error(str(problem)) from None


def _up_convert(records: Buffer, target: TargetCodec, limits: SizeLimits) -> bytes:
    message_set = read_message_set(records, limits.max_message_bytes)
    first = next(message_set, None)
    if first is None:
        raise build_invalid_error("a partition has no messages; send one or more for each partition")
    if first.codec:
        if next(message_set, None) is not None:
            raise build_invalid_error("bytes follow a compressed message set")
        messages = unwrap_messages(first, limits.max_decompressed_bytes)
    else:
        messages = _check_uncompressed(first, message_set)
    body, header = _collect_records(messages)
    codec = first.codec if target.codec is None else target.codec
    header = header._replace(attributes=header.attributes | codec)
    return assemble_batch(header, compress(codec, body, target.levels.get(codec)))


def _check_uncompressed(first: LegacyMessage, others: Iterator[LegacyMessage]) -> Iterator[LegacyMessage]:
    yield first
    for message in others:
        if message.magic != first.magic or message.codec:
            raise build_invalid_error(
                f"format {message.magic} and codec {message.codec} after format {first.magic} without"
            )
        yield message


def _collect_records(messages: Iterator[LegacyMessage]) -> tuple[bytearray, BatchHeader]:
    """Encode the messages as consecutive records; return them with their batch's header."""
    body = bytearray()
    count = attributes = 0
    base_timestamp, max_timestamp = None, NO_TIMESTAMP
    for _offset, magic, message_attributes, timestamp, key, value in messages:
        # In format 0 the bit has no meaning.
        time_of_log = message_attributes & LOG_APPEND_TIME if magic else 0
        if base_timestamp is None:
            base_timestamp = timestamp
        if timestamp < NO_TIMESTAMP or (timestamp == NO_TIMESTAMP and time_of_log):
            detail = (
                f"message {count} has the invalid timestamp {timestamp}; use milliseconds since 1970, or -1 for none"
            )
            raise KafkaError(ErrorCode.INVALID_TIMESTAMP, detail)
        attributes |= time_of_log
        max_timestamp = max(max_timestamp, timestamp)
        body += batch_records.encode_record(count, base_timestamp, (timestamp, key, value, ()))
        count += 1
    header = BatchHeader(
        base_offset=0,
        length=0,
        partition_leader_epoch=-1,
        magic=MAGIC_V2,
        crc=0,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=NO_TIMESTAMP if base_timestamp is None else base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=count,
    )
    return body, header


class ConvertedMessages(NamedTuple):
    """A message set, the offset after the last converted batch, and the number of uncompressed bytes that were read."""

    data: bytes
    next_offset: int
    unpacked_bytes: int


def down_convert(
    data: Buffer, magic: int, first_offset: int, max_bytes: int, max_decompressed_bytes: int, enough_unpacked_bytes: int
) -> ConvertedMessages:
    """Write the whole batches of *data* as a message set of format *magic* (0 or 1), of those from *first_offset* on.

    The first batch that yields a message is converted whole; the bytes beyond *max_bytes* after it are cut off, if necessary
    within a message. Control batches are left out. A compressed batch becomes one wrapper of its codec with all its records,
    unless all of them precede *first_offset*. No further batch is read once *enough_unpacked_bytes* were uncompressed; one
    batch may have up to *max_decompressed_bytes*.

    Raises KafkaError UNSUPPORTED_COMPRESSION_TYPE or CORRUPT_MESSAGE if a zstd batch or a damaged batch precedes the first
    message.
    """
    out = bytearray()
    next_offset = first_offset
    unpacked_bytes = 0
    try:
        for batch in split_batches(data):
            header = read_header(batch)
            if not crc_matches(batch, header):
                raise _build_corrupt_error(header, MalformedError("it does not match its checksum"))
            body = _decompress_batch(batch, header, max_decompressed_bytes)
            converted = _down_convert(body, header, magic, first_offset)
            out += converted[: max_bytes - len(out)] if out else converted
            next_offset = header.last_offset + 1
            unpacked_bytes += len(body)
            if len(out) >= max_bytes or unpacked_bytes >= enough_unpacked_bytes:
                break
    except KafkaError:
        if not out:
            raise
    except MalformedError as problem:
        if not out:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(problem)) from None
    return ConvertedMessages(bytes(out), next_offset, unpacked_bytes)


def _decompress_batch(batch: memoryview, header: BatchHeader, max_bytes: int) -> bytes:
    if header.is_control:
        return b""
    if header.codec == Codec.ZSTD:
        detail = "message formats 0 and 1 do not support zstd; read this topic with a newer client"
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, detail)
    try:
        return bytes(batch_records.read_body(batch, header, max_bytes))
    except MalformedError as problem:
        raise _build_corrupt_error(header, problem) from None


def _down_convert(body: bytes, header: BatchHeader, magic: int, first_offset: int) -> bytes:
    if header.is_control:
        return b""
    try:
        records = _iterate_records(body, header)
        if header.codec:
            return _build_wrapper(records, header, magic, first_offset)
        write = make_entry_writer(magic, header.attributes & LOG_APPEND_TIME)
        # Some versions of librdkafka expect no message before the requested offset.
        return b"".join([write(*record) for record in records if record[0] >= first_offset])
    except (MalformedError, IndexError, struct.error) as problem:
        raise _build_corrupt_error(header, problem) from None


def _build_corrupt_error(header: BatchHeader, problem: Exception) -> KafkaError:
    detail = f"the batch at offset {header.base_offset} cannot be read: {problem}"
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, detail)


def _build_wrapper(records: Iterator[_Record], header: BatchHeader, magic: int, first_offset: int) -> bytes:
    """Write all records as one wrapper; in format 1 its inner offsets count from the first record."""
    write = make_entry_writer(magic, header.attributes & LOG_APPEND_TIME)
    out = bytearray()
    base_offset = last_offset = None
    for last_offset, timestamp, key, value in records:
        if base_offset is None:
            base_offset = last_offset if magic else 0
        out += write(last_offset - base_offset, timestamp, key, value)
    if last_offset is None or last_offset < first_offset:
        # Compaction removed the last records; a consumer that requests their offsets must get past them.
        return b""
    return wrap_messages(
        magic, header.attributes & (CODEC_MASK | LOG_APPEND_TIME), last_offset, header.max_timestamp, out
    )


_Record: TypeAlias = "tuple[int, int, bytes | None, bytes | None]"
"""The parts of a record that a message has: offset, timestamp, key, value."""


def _iterate_records(data: bytes, header: BatchHeader) -> Iterator[_Record]:
    """Yield the records without their headers; raises MalformedError, or IndexError if a number is cut off.

    `batch_records.read_records` also returns headers, but is several times slower; down-conversion often reads much.
    """
    base_offset, base_timestamp, end = header.base_offset, header.base_timestamp, 0
    stamped = header.max_timestamp if header.is_log_append_time else None
    for _ in range(header.record_count):
        length, position = read_short_varint(data, end)
        end = position + length
        timestamp, position = read_short_varint(data, position + 1, read_varlong)
        offset, position = read_short_varint(data, position)
        key_size, position = read_short_varint(data, position)
        key = None
        if key_size >= 0:
            key = data[position : position + key_size]
            position += key_size
        value_size, position = read_short_varint(data, position)
        value = None
        if value_size >= 0:
            value = data[position : position + value_size]
            position += value_size
        if not position < end <= len(data):
            raise MalformedError(f"a record's fields end at byte {position}, the record at {end} of {len(data)}")
        yield base_offset + offset, base_timestamp + timestamp if stamped is None else stamped, key, value
