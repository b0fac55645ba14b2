"""Checking a batch before it enters the log, by Kafka's rules and with Kafka's error codes.

The header and the CRC are always checked. Records are checked in validation mode `records`, and on compacted topics in
any mode. A batch is copied only if it has to change: on LogAppendTime topics, if the header contradicts the records, or
if the topic has a codec of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from kafkacompat.storage.log_config import LOG_APPEND_TIME, PRODUCER, LogConfig
from kafkacompat.wire import record_batch
from kafkacompat.wire.checksum import crc32c
from kafkacompat.wire.compression import Codec, TooLargeError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.record_batch import (
    CRC_END,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC_V2,
    SMALLEST_RECORD_BYTES,
    BatchHeader,
    InvalidRecordsError,
    read_header,
)

PATCHED_END = 16
"""The log sets the fields before this position (base offset, length, leader epoch) when it writes a batch."""

SMALLEST_LENGTH = 14
"""A smaller length field is a corrupt entry of any format for Kafka."""

# Limits for the reactor thread. Each takes some 20 ms at most, and mostly a fifth of that: records to walk (librdkafka's
# default for a batch), bytes to decompress, bytes to compress with a topic's own codec.
AT_ONCE_RECORDS = 10_000
AT_ONCE_UNPACKED_BYTES = 2 * 1024 * 1024
AT_ONCE_PACKED_BYTES = 32 * 1024

_MAGIC_AND_CRC = Struct(">bI")
_ATTRIBUTES = Struct(">h")
_TIMESTAMP = Struct(">q")
_ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 21, 35
_UNUSUAL_ATTRIBUTES = record_batch.CONTROL | Codec.ZSTD
"""Without these bits a batch is no control batch and has a codec below zstd's: one test finds the usual case."""
_CODECS = {"uncompressed": Codec.NONE, "gzip": Codec.GZIP, "snappy": Codec.SNAPPY, "lz4": Codec.LZ4, "zstd": Codec.ZSTD}


class TooLongForTurnError(Exception):
    """The batch would take too long on the reactor thread. Nothing has changed."""


@dataclass(slots=True)
class CheckedBatch:
    """A batch that may enter a log: its header, and its bytes from PATCHED_END on. `len` is the size of the whole batch."""

    header: BatchHeader
    parts: tuple[Buffer, ...]

    def __len__(self) -> int:
        return self.header.length + LENGTH_END

    def join_parts(self) -> bytes:
        """Return the whole batch, with base offset 0."""
        return b"".join((bytes(8), self.header.length.to_bytes(4, "big"), bytes(4), *self.parts))


def check_batch(
    records: Buffer, config: LogConfig, now_ms: int, from_client: bool, *, at_once: bool = False
) -> CheckedBatch:
    """Check exactly one batch; fields that producers may not set are checked only if it is `from_client`.

    Raises KafkaError with Kafka's code, and TooLongForTurnError if `at_once` and the batch would take long.
    """
    view = memoryview(records)
    size_bytes = len(view)
    if size_bytes < HEADER_SIZE:
        raise _not_a_batch(view)
    header = read_header(view)
    if header.magic != MAGIC_V2 or header.length + LENGTH_END != size_bytes:
        raise _not_a_batch(view)
    if from_client and header.base_offset:
        raise _build_record_error(f"a producer's batch begins at offset 0, not {header.base_offset}")
    if size_bytes > config.max_message_bytes:
        raise _too_large(size_bytes, config)
    if crc32c(view[CRC_END:]) != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the batch does not match its CRC")
    if from_client:
        _check_claims(header)
    if at_once and (
        header.record_count > AT_ONCE_RECORDS
        or header.attributes & record_batch.CODEC_MASK
        or config.compression_type != PRODUCER
    ):
        return _check_contents_at_once(view, header, config, now_ms)
    return _check_contents(view, header, config, now_ms, config.max_decompressed_bytes)


def _check_contents_at_once(view: memoryview, header: BatchHeader, config: LogConfig, now_ms: int) -> CheckedBatch:
    max_bytes = _max_bytes_at_once(len(view), header, config)
    if max_bytes > config.max_decompressed_bytes:
        max_bytes = config.max_decompressed_bytes
    try:
        return _check_contents(view, header, config, now_ms, max_bytes)
    except InvalidRecordsError as problem:
        if problem.code != ErrorCode.MESSAGE_TOO_LARGE or max_bytes == config.max_decompressed_bytes:
            raise
    raise TooLongForTurnError


def _max_bytes_at_once(size_bytes: int, header: BatchHeader, config: LogConfig) -> int:
    """Return how many bytes a batch may decompress to. Raises TooLongForTurnError if the header shows that it takes long."""
    if header.record_count > AT_ONCE_RECORDS and (config.validation == "records" or config.compacted):
        # A record count that does not fit the size is rejected without a walk.
        has_room = header.codec or header.record_count * SMALLEST_RECORD_BYTES < size_bytes
        if has_room:
            raise TooLongForTurnError
    if config.compression_type == PRODUCER or not _needs_recompression(header, config):
        return AT_ONCE_UNPACKED_BYTES
    if size_bytes > AT_ONCE_PACKED_BYTES:
        raise TooLongForTurnError
    return AT_ONCE_PACKED_BYTES


def _needs_recompression(header: BatchHeader, config: LogConfig) -> bool:
    """Return whether the topic has a codec of its own that is not the batch's."""
    codec = choose_stored_codec(config)
    return codec is not None and codec != header.codec and not header.is_control


def _check_contents(
    view: memoryview, header: BatchHeader, config: LogConfig, now_ms: int, max_bytes: int
) -> CheckedBatch:
    """Check what depends on the topic and the records, which may decompress to `max_bytes`."""
    max_timestamp = header.max_timestamp
    if config.validation == "records" or config.compacted:
        max_timestamp = _check_records(view, header, config, now_ms, max_bytes)
    if config.message_timestamp_type == LOG_APPEND_TIME:
        checked = _stamp_append_time(view, header, now_ms)
    else:
        _check_times(header.base_timestamp, max_timestamp, config, now_ms)
        if max_timestamp == header.max_timestamp and not header.attributes & record_batch.LOG_APPEND_TIME:
            checked = CheckedBatch(header, (view[PATCHED_END:],))
        else:
            checked = _correct_timestamp(view, header, max_timestamp)
    if config.compression_type == PRODUCER or not _needs_recompression(header, config):
        return checked
    return _recompress_batch(checked, config, max_bytes)


def _not_a_batch(view: memoryview) -> KafkaError:
    if len(view) > LENGTH_END + 4:
        length, magic = int.from_bytes(view[8:12], "big", signed=True), view[16]
        if length < SMALLEST_LENGTH or magic > MAGIC_V2:
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"an entry of length {length} and format {magic} is no batch")
    return _build_record_error("the records of a partition have to be exactly one whole batch of format version 2")


def _build_record_error(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, detail)


def _too_large(size_bytes: int, config: LogConfig) -> KafkaError:
    detail = f"a batch of {size_bytes} bytes is larger than max.message.bytes={config.max_message_bytes}"
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, detail)


def _check_claims(header: BatchHeader) -> None:
    if header.record_count <= 0 or header.last_offset_delta + 1 != header.record_count:
        raise _build_record_error(f"{header.record_count} records cannot span {header.last_offset_delta + 1} offsets")
    if header.attributes & _UNUSUAL_ATTRIBUTES:
        if header.is_control:
            raise _build_record_error("clients may not write control records")
        if header.codec > Codec.ZSTD:
            raise _build_record_error(f"compression codec {header.codec} is unknown")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise _build_record_error(f"producer {header.producer_id} sent a batch without sequence number or epoch")


def _check_records(view: memoryview, header: BatchHeader, config: LogConfig, now_ms: int, max_bytes: int) -> int:
    """Check every record; returns the maximum timestamp that the header should have."""
    timed = config.message_timestamp_type != LOG_APPEND_TIME and not header.is_log_append_time
    oldest = now_ms - config.message_timestamp_before_max_ms
    max_timestamp = record_batch.check_records(
        view,
        header,
        keys_required=config.compacted,
        max_decompressed_bytes=max_bytes,
        oldest_timestamp=oldest if timed and oldest > 0 else None,
        newest_timestamp=now_ms + config.message_timestamp_after_max_ms if timed else None,
    )
    return header.max_timestamp if header.is_log_append_time else max_timestamp


def _stamp_append_time(view: memoryview, header: BatchHeader, now_ms: int) -> CheckedBatch:
    if header.is_log_append_time:
        raise _append_time_error()
    return change_timestamp(view, header, header.attributes | record_batch.LOG_APPEND_TIME, now_ms)


def _correct_timestamp(view: memoryview, header: BatchHeader, max_timestamp: int) -> CheckedBatch:
    if header.is_log_append_time and max_timestamp == -1:
        raise _append_time_error()
    return change_timestamp(view, header, header.attributes & ~record_batch.LOG_APPEND_TIME, max_timestamp)


def _append_time_error() -> KafkaError:
    return KafkaError(ErrorCode.INVALID_TIMESTAMP, "a producer may not set the timestamp type LogAppendTime")


def change_timestamp(view: memoryview, header: BatchHeader, attributes: int, max_timestamp: int) -> CheckedBatch:
    """Return the batch with other attributes and another maximum timestamp (ms)."""
    head = bytearray(view[:HEADER_SIZE])
    body = view[HEADER_SIZE:]
    _ATTRIBUTES.pack_into(head, _ATTRIBUTES_AT, attributes)
    _TIMESTAMP.pack_into(head, _MAX_TIMESTAMP_AT, max_timestamp)
    crc = crc32c(body, crc32c(head[CRC_END:]))
    _MAGIC_AND_CRC.pack_into(head, PATCHED_END, MAGIC_V2, crc)
    header = header._replace(attributes=attributes, max_timestamp=max_timestamp, crc=crc)
    return CheckedBatch(header, (head[PATCHED_END:], body))


def _check_times(base_timestamp: int, max_timestamp: int, config: LogConfig, now_ms: int) -> None:
    newest = now_ms + config.message_timestamp_after_max_ms
    oldest = now_ms - config.message_timestamp_before_max_ms
    if oldest <= base_timestamp <= newest and oldest <= max_timestamp <= newest:
        return
    for timestamp in (base_timestamp, max_timestamp):
        if not oldest <= timestamp <= newest and timestamp != -1:
            limit = "before" if timestamp < oldest else "after"
            detail = f"the timestamp {timestamp} is outside message.timestamp.{limit}.max.ms at {now_ms}"
            raise KafkaError(ErrorCode.INVALID_TIMESTAMP, detail)


def list_codec_levels(config: LogConfig) -> dict[int, int]:
    """Return the compression levels of the codecs that have levels."""
    return {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }


def choose_stored_codec(config: LogConfig) -> int | None:
    """Return the codec that batches are stored with; None if each keeps its producer's."""
    return None if config.compression_type == PRODUCER else _CODECS[config.compression_type]


def _recompress_batch(checked: CheckedBatch, config: LogConfig, max_bytes: int) -> CheckedBatch:
    codec = _CODECS[config.compression_type]
    try:
        batch = record_batch.recompress_batch(
            checked.join_parts(), codec, list_codec_levels(config).get(codec), max_bytes
        )
    except TooLargeError as error:
        raise InvalidRecordsError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except MalformedError as error:
        raise _build_record_error(str(error)) from error
    if len(batch) > config.max_message_bytes:
        raise _too_large(len(batch), config)
    return CheckedBatch(read_header(batch), (memoryview(batch)[PATCHED_END:],))
