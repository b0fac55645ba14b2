"""Preparing produced batches: which are checked at once, and the results of worker processes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafkacompat.storage.intake.preparation import (
    AT_ONCE_MESSAGES_BYTES,
    as_checked_batch,
    convert_messages_at_once,
    take_in,
)
from kafkacompat.storage.intake.validation import (
    AT_ONCE_PACKED_BYTES,
    AT_ONCE_RECORDS,
    AT_ONCE_UNPACKED_BYTES,
    CheckedBatch,
    TooLongForTurnError,
    check_batch,
)
from kafkacompat.storage.log_config import LOG_APPEND_TIME, LogConfig
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.message_set import make_entry_writer, wrap_messages
from kafkacompat.wire.record_batch import (
    HEADER_SIZE,
    InvalidRecordsError,
    assemble_batch,
    build_batch,
    crc_matches,
    read_header,
    read_records,
)
from tests.storage.support import NOW_MS

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


def make_batch(count: int = 1, size_bytes: int = 1, codec: int = 0, key: bytes | None = b"k") -> bytes:
    return build_batch([(NOW_MS, key, bytes(size_bytes), [])] * count, codec=codec)


def make_claiming_batch(count: int, codec: int = 0) -> bytes:
    """Build a batch of one record whose header claims more."""
    made = make_batch(codec=codec)
    header = read_header(made)._replace(record_count=count, last_offset_delta=count - 1)
    return assemble_batch(header, made[HEADER_SIZE:])


def at_once(records: bytes, **config: Any) -> CheckedBatch:
    return check_batch(records, LogConfig(**config), NOW_MS, True, at_once=True)


def catch_code(records: bytes, **config: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        at_once(records, **config)
    return refused.value.code


# At once


@pytest.mark.parametrize("codec", [Codec.NONE, *CODECS])
def test_many_records_are_too_much(codec: Codec) -> None:
    few, many = (make_batch(count, codec=codec) for count in (AT_ONCE_RECORDS, AT_ONCE_RECORDS + 1))
    assert len(at_once(few)) == len(few)
    for config in ({}, {"validation": "header", "cleanup_policy": frozenset({"compact"})}):
        with pytest.raises(TooLongForTurnError):
            at_once(many, **config)
    assert len(at_once(many, validation="header")) == len(many)


@pytest.mark.parametrize("codec", CODECS)
def test_records_that_unpack_to_many_bytes_are_too_much(codec: Codec) -> None:
    large = make_batch(size_bytes=AT_ONCE_UNPACKED_BYTES, codec=codec)
    assert len(at_once(make_batch(size_bytes=AT_ONCE_UNPACKED_BYTES // 2, codec=codec)))
    with pytest.raises(TooLongForTurnError):
        at_once(large)
    assert len(at_once(large, validation="header")) == len(large)


def test_a_batch_beyond_the_decompressed_limit_is_rejected_at_once() -> None:
    large = make_batch(size_bytes=1000, codec=Codec.ZSTD)
    assert catch_code(large, max_decompressed_bytes=1000) == ErrorCode.MESSAGE_TOO_LARGE
    assert catch_code(large, max_decompressed_bytes=1000, compression_type="gzip") == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("mode", ["header", "records"])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_recompressing_many_bytes_takes_too_long(mode: str, codec: Codec) -> None:
    config = {"validation": mode, "compression_type": "gzip"}
    large = make_batch(size_bytes=AT_ONCE_PACKED_BYTES, codec=codec)
    little = at_once(make_batch(size_bytes=AT_ONCE_PACKED_BYTES // 2, codec=codec), **config)
    assert little.header.codec == Codec.GZIP
    with pytest.raises(TooLongForTurnError):
        at_once(large, **config)
    assert len(at_once(large)) == len(large)
    packed = make_batch(size_bytes=AT_ONCE_PACKED_BYTES, codec=Codec.GZIP)
    assert len(at_once(packed, **config)) == len(packed)


def test_more_records_than_fit_are_rejected_at_once() -> None:
    assert catch_code(make_claiming_batch(AT_ONCE_RECORDS + 1)) == ErrorCode.INVALID_RECORD
    assert catch_code(make_claiming_batch(2**31 - 1)) == ErrorCode.INVALID_RECORD


def test_a_bad_header_is_rejected_at_once() -> None:
    many = make_batch(AT_ONCE_RECORDS + 1)
    assert catch_code(many[:-1] + b"x") == ErrorCode.CORRUPT_MESSAGE
    assert catch_code(many, max_message_bytes=1000) == ErrorCode.MESSAGE_TOO_LARGE


def test_a_small_uncompressed_message_set_is_converted_at_once() -> None:
    message = make_entry_writer(1, 0)(0, NOW_MS, b"k", b"v")
    checked = convert_messages_at_once(message, LogConfig(), NOW_MS, AT_ONCE_MESSAGES_BYTES)
    assert [record.value for record in read_records(checked.join_parts())] == [b"v"]
    for messages, together_bytes in (
        (message, AT_ONCE_MESSAGES_BYTES + 1),
        (wrap_messages(1, Codec.GZIP, 0, NOW_MS, message), 0),
    ):
        with pytest.raises(TooLongForTurnError):
            convert_messages_at_once(messages, LogConfig(), NOW_MS, together_bytes)


# In a worker process


@pytest.mark.parametrize("codec", [Codec.NONE, *CODECS])
def test_a_batch_that_is_stored_unchanged_does_not_come_back(codec: Codec) -> None:
    assert take_in(make_batch(AT_ONCE_RECORDS + 1, codec=codec), LogConfig(), NOW_MS) is None


def test_a_changed_batch_comes_back_as_it_is_stored() -> None:
    sent = make_batch(3, codec=Codec.ZSTD)
    taken = take_in(sent, LogConfig(compression_type="lz4"), NOW_MS)
    assert taken is not None
    header = read_header(taken)
    assert (header.codec, header.base_offset) == (Codec.LZ4, 0)
    assert crc_matches(taken, header)
    assert list(read_records(taken)) == list(read_records(sent))
    checked = as_checked_batch(taken, NOW_MS + 1)
    assert checked.header == header
    assert checked.join_parts()[16:] == taken[16:]


def test_a_message_set_comes_back_as_a_batch() -> None:
    message = make_entry_writer(1, 0)(0, NOW_MS, b"k", b"v")
    taken = take_in(wrap_messages(1, Codec.GZIP, 0, NOW_MS, message), LogConfig(), NOW_MS)
    assert taken is not None
    assert read_header(taken).codec == Codec.GZIP
    assert [record.value for record in read_records(taken)] == [b"v"]


def test_the_time_of_the_log_is_that_of_the_append() -> None:
    config = LogConfig(message_timestamp_type=LOG_APPEND_TIME)
    taken = take_in(make_batch(3), config, NOW_MS)
    assert taken is not None
    stored = as_checked_batch(taken, NOW_MS + 5).join_parts()
    header = read_header(stored)
    assert header.is_log_append_time and header.max_timestamp == NOW_MS + 5
    assert crc_matches(stored, header)


def test_refusals_travel_between_processes() -> None:
    compacted = LogConfig(cleanup_policy=frozenset({"compact"}))
    with pytest.raises(InvalidRecordsError) as refused:
        take_in(make_batch(2, key=None), compacted, NOW_MS)
    error = pickle.loads(pickle.dumps(refused.value))
    assert (error.code, error.detail, error.record_errors) == (
        ErrorCode.INVALID_RECORD,
        refused.value.detail,
        refused.value.record_errors,
    )
    assert [index for index, _ in error.record_errors] == [0, 1]
    assert pickle.loads(pickle.dumps(compacted)) == compacted


def test_a_bomb_is_refused() -> None:
    for config in (
        LogConfig(max_decompressed_bytes=999),
        LogConfig(max_decompressed_bytes=999, compression_type="gzip"),
    ):
        with pytest.raises(KafkaError) as refused:
            take_in(make_batch(size_bytes=1000, codec=Codec.ZSTD), config, NOW_MS)
        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
