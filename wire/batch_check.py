"""Checks that every consumer can read the batch that a producer sent.

Every produced batch passes here, so these functions are fast.
"""

from __future__ import annotations

from kafkacompat.wire.batch_header import ATTRIBUTES_POSITION, CODEC_MASK, BatchHeader
from kafkacompat.wire.batch_records import read_body
from kafkacompat.wire.compression import Codec, TooLargeError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import MAX_INT64, MIN_INT64, Buffer, MalformedError
from kafkacompat.wire.record_slices import timestamp_deltas
from kafkacompat.wire.record_walk import MAX_RECORD_ERRORS
from kafkacompat.wire.walk_form import walk

BATCHES_FROM_PRODUCE_VERSION = 3
"""Requests of older versions carry message sets."""
ZSTD_FROM_PRODUCE_VERSION = 7
SMALLEST_RECORD_BYTES = 7
"""A byte each for length, attributes, timestamp delta, offset delta, null key, null value and header count."""

_NO_TIMESTAMP = -1


class InvalidRecordsError(KafkaError):
    """Rejection of a batch; ``record_errors`` names the records at fault, as (index in the batch, reason)."""

    def __init__(self, code: ErrorCode, detail: str, record_errors: list[tuple[int, str]] | None = None) -> None:
        super().__init__(code, detail)
        self.record_errors = record_errors or []


def check_produce_version(records: Buffer | None, version: int) -> Buffer:
    """Return *records* if a Produce request of this version may carry them (KIP-110 for zstd).

    Before version 3 both formats pass: whether they are a message set or a batch shows when they are read.

    Raises InvalidRecordsError when there are none, KafkaError when the version is too old for their codec.
    """
    if version < BATCHES_FROM_PRODUCE_VERSION and records is not None:
        return records
    if not records:
        raise InvalidRecordsError(ErrorCode.INVALID_RECORD, "a partition without records; send one batch for each")
    if version < ZSTD_FROM_PRODUCE_VERSION and _read_codec(records) == Codec.ZSTD:
        detail = f"zstd needs Produce version {ZSTD_FROM_PRODUCE_VERSION}; this request has version {version}"
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, detail)
    return records


def _read_codec(records: Buffer) -> int:
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
    """Check every record of *batch* and return the largest timestamp (ms).

    The batch passes if

    - its records unpack to at most *max_decompressed_bytes*,
    - there are as many records as the header says, each ends where its length says, and the last one ends the batch,
    - key, value and headers of each record fill it, and each header has a name,
    - the offsets count up by one,
    - each record has a key, with *keys_required*,
    - each timestamp lies between *oldest_timestamp* and *newest_timestamp* where these are given; -1, no time, passes.

    Kafka 4.3.1 accepts two kinds of batches that are rejected here. An offset may be left out in an uncompressed batch. And
    in a compressed batch the length of a record may lie, which its consumers then refuse to read.

    Raises InvalidRecordsError with INVALID_RECORD, INVALID_TIMESTAMP or MESSAGE_TOO_LARGE.
    """
    try:
        data = bytes(_unpack_body(batch, header, max_decompressed_bytes))
        newest_delta, without_key = walk(data, header.record_count, keys_required)
    except TooLargeError as problem:
        raise InvalidRecordsError(ErrorCode.MESSAGE_TOO_LARGE, str(problem)) from None
    except MalformedError as problem:
        raise InvalidRecordsError(ErrorCode.INVALID_RECORD, str(problem)) from None
    newest = header.base_timestamp + newest_delta
    limit = MAX_INT64 if newest_timestamp is None else min(newest_timestamp, MAX_INT64)
    if oldest_timestamp is not None or not MIN_INT64 <= newest <= limit:
        _check_timestamps(data, header, MIN_INT64 if oldest_timestamp is None else oldest_timestamp, limit)
    if without_key:
        raise _build_record_errors(
            ErrorCode.INVALID_RECORD, [(index, "a compacted topic needs a key") for index in without_key]
        )
    return newest


def _unpack_body(batch: Buffer, header: BatchHeader, max_bytes: int) -> Buffer:
    """Return the records, unpacked; raise if their number cannot fit, before they are unpacked where *max_bytes* shows it."""
    least_bytes = header.record_count * SMALLEST_RECORD_BYTES
    if least_bytes > max_bytes and header.codec:
        raise TooLargeError(f"{header.record_count} compressed records unpack to more than {max_bytes} bytes")
    body = read_body(batch, header, max_bytes)
    if least_bytes > len(body):
        raise MalformedError(f"{header.record_count} records cannot lie in {len(body)} bytes")
    return body


def _check_timestamps(data: bytes, header: BatchHeader, oldest: int, newest: int) -> None:
    """Raise INVALID_TIMESTAMP if a record's timestamp (ms) lies outside the limits."""
    errors = []
    for index, delta in enumerate(timestamp_deltas(data, header.record_count)):
        timestamp = header.base_timestamp + delta
        if not oldest <= timestamp <= newest and timestamp != _NO_TIMESTAMP:
            errors.append((index, f"the timestamp {timestamp} is outside of {oldest} to {newest}"))
            if len(errors) == MAX_RECORD_ERRORS:
                break
    if errors:
        raise _build_record_errors(ErrorCode.INVALID_TIMESTAMP, errors)


def _build_record_errors(code: ErrorCode, errors: list[tuple[int, str]]) -> InvalidRecordsError:
    index, reason = errors[0]
    return InvalidRecordsError(
        code, f"{len(errors)} records are refused, the first (index {index}) as {reason}", errors
    )
