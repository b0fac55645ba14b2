"""Is what a producer sent a batch that every consumer can read? Asked of each batch, so it has to be quick."""

from __future__ import annotations

import struct

from kafkacompat.wire.batch_header import ATTRIBUTES_POSITION, CODEC_MASK, BatchHeader
from kafkacompat.wire.batch_records import read_body
from kafkacompat.wire.compression import Codec, TooLargeError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import MAX_INT64, MIN_INT64, Buffer, MalformedError
from kafkacompat.wire.record_walk import MAX_RECORD_ERRORS, PADDING, timestamp_deltas, walk

BATCHES_FROM_PRODUCE_VERSION = 3
"""Before it records are message sets."""
ZSTD_FROM_PRODUCE_VERSION = 7
SMALLEST_RECORD_BYTES = 7
"""Length, attributes, two differences, no key, no value, no headers: a byte each."""

_NO_TIMESTAMP = -1


class InvalidRecordsError(KafkaError):
    """A batch is refused; ``record_errors`` names records it is refused for, as (index in the batch, reason)."""

    def __init__(self, code: ErrorCode, detail: str, record_errors: list[tuple[int, str]] | None = None) -> None:
        super().__init__(code, detail)
        self.record_errors = record_errors or []


def check_produce_version(records: Buffer | None, version: int) -> Buffer:
    """Return *records* if a Produce request of that version may hold them (KIP-110 for zstd).

    Before version 3 everything may be there; whether it is a message set or a batch shows when it is read.

    Raises InvalidRecordsError when there are none, KafkaError when their codec is too new.
    """
    if version < BATCHES_FROM_PRODUCE_VERSION and records is not None:
        return records
    if not records:
        raise InvalidRecordsError(ErrorCode.INVALID_RECORD, "a partition without records; send one batch for each")
    if version < ZSTD_FROM_PRODUCE_VERSION and _codec(records) == Codec.ZSTD:
        detail = f"zstd needs Produce version {ZSTD_FROM_PRODUCE_VERSION}; this request has version {version}"
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, detail)
    return records


def _codec(records: Buffer) -> int:
    return records[ATTRIBUTES_POSITION] & CODEC_MASK if len(records) > ATTRIBUTES_POSITION else 0


def check_records(
    batch: Buffer,
    header: BatchHeader,
    *,
    keys_required: bool,
    max_decompressed_bytes: int,
    oldest_timestamp: int | None = None,
    newest_timestamp: int | None = None,
) -> int:
    """Walk the records of *batch* and return the largest timestamp among them (ms).

    Checked are: that they unpack (to at most *max_decompressed_bytes*), that their lengths lead from
    one to the next and the last ends where the batch does, that there are as many as the header
    says, that their offsets count up by one, with *keys_required* that each has a key, and with
    *oldest_timestamp* or *newest_timestamp* that each has a time within these (-1, no time, passes).

    Kafka looks at more in one respect: it also follows the lengths of key, value and headers inside
    each record. It looks at less in another: it lets gaps between the offsets pass in an uncompressed
    batch, and rewrites a compressed one that has them.

    Raises InvalidRecordsError with INVALID_RECORD, INVALID_TIMESTAMP or MESSAGE_TOO_LARGE.
    """
    try:
        data = b"".join((_body(batch, header, max_decompressed_bytes), PADDING))
        newest, without_key = walk(data, header.record_count, keys_required)
    except TooLargeError as problem:
        raise InvalidRecordsError(ErrorCode.MESSAGE_TOO_LARGE, str(problem)) from None
    except MalformedError as problem:
        raise InvalidRecordsError(ErrorCode.INVALID_RECORD, str(problem)) from None
    except struct.error:
        detail = "the length of a record leads out of its batch"
        raise InvalidRecordsError(ErrorCode.INVALID_RECORD, detail) from None
    if newest is None:
        newest = max(timestamp_deltas(data, header.record_count), default=0)
    newest += header.base_timestamp
    limit = MAX_INT64 if newest_timestamp is None else min(newest_timestamp, MAX_INT64)
    if oldest_timestamp is not None or not MIN_INT64 <= newest <= limit:
        _check_timestamps(data, header, MIN_INT64 if oldest_timestamp is None else oldest_timestamp, limit)
    if without_key:
        raise _refused(ErrorCode.INVALID_RECORD, [(index, "a compacted topic needs a key") for index in without_key])
    return newest


def _body(batch: Buffer, header: BatchHeader, max_bytes: int) -> Buffer:
    """The records, unpacked; a batch that claims more of them than there is room for is not walked, or not even unpacked."""
    least_bytes = header.record_count * SMALLEST_RECORD_BYTES
    if header.codec and least_bytes > max_bytes:
        raise TooLargeError(f"{header.record_count} compressed records unpack to more than {max_bytes} bytes")
    body = read_body(batch, header, max_bytes)
    if least_bytes > len(body):
        raise MalformedError(f"{header.record_count} records cannot lie in {len(body)} bytes")
    return body


def _check_timestamps(data: bytes, header: BatchHeader, oldest: int, newest: int) -> None:
    """Raise INVALID_TIMESTAMP if a record's time lies outside the limits."""
    errors = []
    for index, delta in enumerate(timestamp_deltas(data, header.record_count)):
        timestamp = header.base_timestamp + delta
        if not oldest <= timestamp <= newest and timestamp != _NO_TIMESTAMP:
            errors.append((index, f"the timestamp {timestamp} is outside of {oldest} to {newest}"))
            if len(errors) == MAX_RECORD_ERRORS:
                break
    if errors:
        raise _refused(ErrorCode.INVALID_TIMESTAMP, errors)


def _refused(code: ErrorCode, errors: list[tuple[int, str]]) -> InvalidRecordsError:
    index, reason = errors[0]
    return InvalidRecordsError(
        code, f"{len(errors)} records are refused, the first (index {index}) as {reason}", errors
    )
