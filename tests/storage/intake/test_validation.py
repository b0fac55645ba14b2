"""Validation of batches: rejected ones, and changes to accepted ones."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kafkacompat.storage.intake.validation import check_batch
from kafkacompat.storage.log_config import LOG_APPEND_TIME, LogConfig
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import (
    CONTROL,
    CRC_END,
    HEADER_SIZE,
    LENGTH_END,
    BatchHeader,
    InvalidRecordsError,
    assemble_batch,
    build_batch,
    crc_matches,
    read_header,
    read_records,
)
from tests.storage.support import NOW_MS, make_batch

BOTH_MODES = pytest.mark.parametrize("mode", ["header", "records"])
SET_LOG_APPEND_TIME = 0x08


def change_header(original: bytes, **fields: int) -> bytes:
    """Return the batch with other header fields and a matching CRC."""
    header = read_header(original)._replace(**fields)
    return assemble_batch(header, original[HEADER_SIZE:])


def check_and_join(records: bytes, *, from_client: bool = True, now_ms: int = NOW_MS, **config: Any) -> bytes:
    """Return the batch as it is stored at offset 0."""
    checked = check_batch(records, LogConfig(**config), now_ms, from_client)
    header = checked.header
    stored = b"".join((records[:8], struct.pack(">ii", header.length, -1), *checked.parts))
    stored_header = read_header(stored)
    assert stored_header == header._replace(partition_leader_epoch=-1)
    assert crc_matches(stored, stored_header)
    assert len(stored) == header.size_bytes
    return stored


def catch_code(records: bytes, **kw: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        check_and_join(records, **kw)
    return refused.value.code


@BOTH_MODES
@pytest.mark.parametrize("codec", list(Codec))
def test_a_sound_batch_is_stored_unchanged(mode: str, codec: Codec) -> None:
    sent = make_batch(10, codec=codec)
    assert check_and_join(sent, validation=mode) == sent


@BOTH_MODES
def test_nothing_is_copied_of_a_sound_batch(mode: str) -> None:
    sent = make_batch(10)
    (rest,) = check_batch(sent, LogConfig(validation=mode), NOW_MS, True).parts
    assert isinstance(rest, memoryview) and rest.obj is sent


@pytest.mark.parametrize("cut", [0, 1, 11, 16, 17, 60, 61, -1])
def test_a_batch_that_is_cut_off_is_invalid(cut: int) -> None:
    assert catch_code(make_batch()[:cut]) == ErrorCode.INVALID_RECORD


def test_more_than_one_batch_is_invalid() -> None:
    assert catch_code(make_batch() + make_batch()) == ErrorCode.INVALID_RECORD
    assert catch_code(make_batch() + b"x") == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_are_invalid(magic: int) -> None:
    assert catch_code(change_header(make_batch(), magic=magic)) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_unknown_formats_are_corrupt(magic: int) -> None:
    assert catch_code(change_header(make_batch(), magic=magic)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("size_bytes", [17, 60, 100])
@pytest.mark.parametrize(
    ("length", "magic", "code"),
    [
        (13, 2, ErrorCode.CORRUPT_MESSAGE),
        (0, 0, ErrorCode.CORRUPT_MESSAGE),
        (-1, 2, ErrorCode.CORRUPT_MESSAGE),
        (-(2**31), 2, ErrorCode.CORRUPT_MESSAGE),
        (14, 3, ErrorCode.CORRUPT_MESSAGE),
        (14, 2, ErrorCode.INVALID_RECORD),
        (14, 1, ErrorCode.INVALID_RECORD),
        (1 << 24, 2, ErrorCode.INVALID_RECORD),
    ],
)
def test_an_impossible_length_or_format_is_corrupt(size_bytes: int, length: int, magic: int, code: ErrorCode) -> None:
    sent = bytearray(size_bytes)
    struct.pack_into(">iib", sent, 8, length, 0, magic)
    assert catch_code(bytes(sent)) == code


@BOTH_MODES
def test_every_byte_under_the_crc_counts(mode: str) -> None:
    sent = make_batch()
    for position in range(CRC_END - 4, len(sent)):
        damaged = bytearray(sent)
        damaged[position] ^= 0x10
        assert catch_code(bytes(damaged), validation=mode) == ErrorCode.CORRUPT_MESSAGE


@BOTH_MODES
@pytest.mark.parametrize(
    "fields",
    [
        {"record_count": 0},
        {"record_count": -1, "last_offset_delta": -2},
        {"record_count": 2},
        {"last_offset_delta": 4},
        {"last_offset_delta": 2**31 - 1, "record_count": -(2**31)},
        {"base_offset": 1},
        {"attributes": CONTROL},
        {"attributes": 5},
        {"producer_id": 0, "producer_epoch": 0, "base_sequence": -1},
        {"producer_id": 1, "producer_epoch": 0, "base_sequence": -1},
        {"producer_id": 1, "producer_epoch": -1, "base_sequence": 0},
    ],
)
def test_claims_a_client_may_not_make(mode: str, fields: dict[str, int]) -> None:
    assert catch_code(change_header(make_batch(3), **fields), validation=mode) == ErrorCode.INVALID_RECORD


def test_the_broker_itself_writes_control_batches() -> None:
    sent = change_header(make_batch(), attributes=CONTROL | 0x10, producer_id=1, producer_epoch=0)
    assert check_and_join(sent, from_client=False, validation="header") == sent


@pytest.mark.parametrize(("limit", "code"), [(0, None), (-1, ErrorCode.MESSAGE_TOO_LARGE)])
def test_the_size_limit_counts_the_whole_batch(limit: int, code: ErrorCode | None) -> None:
    sent = make_batch()
    if code is None:
        assert check_and_join(sent, max_message_bytes=len(sent) + limit) == sent
    else:
        assert catch_code(sent, max_message_bytes=len(sent) + limit) == code


@BOTH_MODES
def test_compacted_topics_need_keys_in_both_modes(mode: str) -> None:
    compacted: dict[str, Any] = {"cleanup_policy": frozenset({"compact"}), "validation": mode}
    sent = build_batch([(NOW_MS, b"k", b"v", []), (NOW_MS, None, b"v", [])])
    with pytest.raises(InvalidRecordsError) as refused:
        check_and_join(sent, **compacted)
    assert refused.value.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in refused.value.record_errors] == [1]
    assert check_and_join(make_batch(), **compacted) == make_batch()


@BOTH_MODES
@pytest.mark.parametrize(
    ("timestamp", "code"),
    [
        (NOW_MS + 3_600_000, None),
        (NOW_MS + 3_600_001, ErrorCode.INVALID_TIMESTAMP),
        (NOW_MS - 1000, None),
        (NOW_MS - 1001, ErrorCode.INVALID_TIMESTAMP),
        (-1, None),
    ],
)
def test_timestamps_lie_within_the_topics_limits(mode: str, timestamp: int, code: ErrorCode | None) -> None:
    sent = make_batch(timestamp=timestamp)
    config: dict[str, Any] = {"validation": mode, "message_timestamp_before_max_ms": 1000}
    if code is None:
        assert check_and_join(sent, **config) == sent
    else:
        assert catch_code(sent, **config) == code


def test_every_record_has_to_be_recent_enough() -> None:
    sent = build_batch([(NOW_MS, b"k", b"v", []), (NOW_MS - 5000, b"k", b"v", []), (NOW_MS, b"k", b"v", [])])
    assert catch_code(sent, message_timestamp_before_max_ms=1000) == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("claimed", [NOW_MS - 5, NOW_MS + 1000])
def test_records_mode_corrects_the_headers_maximum(claimed: int) -> None:
    sent = make_batch(3)
    stored = check_and_join(change_header(sent, max_timestamp=claimed))
    assert stored == sent
    assert (
        read_header(check_and_join(change_header(sent, max_timestamp=claimed), validation="header")).max_timestamp
        == claimed
    )


@BOTH_MODES
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_log_append_time_replaces_the_clients_times(mode: str, codec: Codec) -> None:
    sent = make_batch(3, timestamp=5, codec=codec)
    stored = check_and_join(sent, validation=mode, message_timestamp_type=LOG_APPEND_TIME, now_ms=NOW_MS)
    assert [record.timestamp for record in read_records(stored)] == [NOW_MS] * 3
    assert read_header(stored).attributes == codec | SET_LOG_APPEND_TIME


@BOTH_MODES
def test_log_append_time_takes_any_time_of_a_client(mode: str) -> None:
    sent = make_batch(timestamp=NOW_MS * 2)
    assert check_and_join(sent, validation=mode, message_timestamp_type=LOG_APPEND_TIME)


@BOTH_MODES
def test_a_client_may_not_call_its_times_log_append_times(mode: str) -> None:
    sent = change_header(make_batch(), attributes=SET_LOG_APPEND_TIME)
    log_append: dict[str, Any] = {"message_timestamp_type": LOG_APPEND_TIME, "validation": mode}
    assert catch_code(sent, **log_append) == ErrorCode.INVALID_TIMESTAMP
    assert (
        catch_code(change_header(sent, max_timestamp=-1, base_timestamp=-1), validation=mode)
        == ErrorCode.INVALID_TIMESTAMP
    )
    # Kafka turns timestamps in range into create times.
    assert check_and_join(sent, validation=mode) == make_batch()


@pytest.mark.parametrize("target", [codec for codec in Codec if codec != Codec.GZIP])
def test_the_topics_codec_replaces_the_clients(target: Codec) -> None:
    sent = make_batch(50, codec=Codec.GZIP, producer_id=3, producer_epoch=1, base_sequence=9)
    name = "uncompressed" if target == Codec.NONE else target.name.lower()
    for mode in ("header", "records"):
        stored = check_and_join(sent, compression_type=name, validation=mode)
        header = read_header(stored)
        assert header.codec == target
        assert list(read_records(stored)) == list(read_records(sent))
        assert header[7:] == read_header(sent)[7:]


def test_a_batch_of_the_topics_codec_is_left_alone() -> None:
    sent = make_batch(50, codec=Codec.GZIP)
    (rest,) = check_batch(sent, LogConfig(compression_type="gzip"), NOW_MS, True).parts
    assert isinstance(rest, memoryview) and rest.obj is sent


def test_the_size_limit_counts_again_after_recompression() -> None:
    sent = make_batch(50, codec=Codec.GZIP, size_bytes=100)
    assert catch_code(sent, compression_type="uncompressed", max_message_bytes=1000) == ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_that_does_not_decompress_is_rejected() -> None:
    sent = make_batch(50, codec=Codec.GZIP)
    broken = assemble_batch(read_header(sent), b"no gzip at all")
    assert catch_code(broken) == ErrorCode.INVALID_RECORD
    assert catch_code(broken, validation="header", compression_type="zstd") == ErrorCode.INVALID_RECORD
    assert check_and_join(broken, validation="header") == broken


def test_a_bomb_is_refused_where_records_are_read() -> None:
    bomb = make_batch(1, codec=Codec.ZSTD, size_bytes=1 << 20)
    assert catch_code(bomb, max_decompressed_bytes=1 << 16) == ErrorCode.MESSAGE_TOO_LARGE
    assert check_and_join(bomb, max_decompressed_bytes=1 << 16, validation="header") == bomb


def test_log_append_time_and_recompression_go_together() -> None:
    stored = check_and_join(
        make_batch(5, codec=Codec.GZIP),
        compression_type="lz4",
        message_timestamp_type=LOG_APPEND_TIME,
        now_ms=NOW_MS + 7,
    )
    header: BatchHeader = read_header(stored)
    assert (header.codec, header.is_log_append_time, header.max_timestamp) == (Codec.LZ4, True, NOW_MS + 7)
    assert header.length + LENGTH_END == len(stored)
