"""LegacyMessage sets of formats 0 and 1: known bytes, there and back, and whatever else may come."""

from __future__ import annotations

import gzip
import random
import struct
from contextlib import suppress
from zlib import crc32

import pytest

from kafkacompat.wire.compression import TooLargeError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.lz4_checksum import short_xxh32, use_old_checksum, use_specified_checksum
from kafkacompat.wire.message_set import (
    LegacyMessage,
    make_entry_writer,
    read_message_set,
    unwrap_messages,
    wrap_messages,
)
from kafkacompat.wire.primitives import MalformedError

# Written by kafka-clients 3.9.1: key "k", value "v", offset 5, timestamp 1000.
V0 = bytes.fromhex("0000000000000005000000101fecd70a0000000000016b0000000176")
V1 = bytes.fromhex("000000000000000500000018e4e321bc010000000000000003e8000000016b0000000176")

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LOG_APPEND_TIME = 8
NO_LIMIT = 1 << 30


def make_entry(body: bytes, offset: int = 0) -> bytes:
    """Return an entry around the bytes that its CRC covers."""
    return struct.pack(">qiI", offset, len(body) + 4, crc32(body)) + body


def read_messages(data: bytes, **kw: int) -> list[LegacyMessage]:
    return list(read_message_set(data, **kw))


def catch_code(data: bytes, **kw: int) -> ErrorCode:
    with pytest.raises(KafkaError) as problem:
        read_messages(data, **kw)
    return problem.value.code


@pytest.mark.parametrize(("magic", "known"), [(0, V0), (1, V1)], ids=["v0", "v1"])
def test_known_bytes(magic: int, known: bytes) -> None:
    assert make_entry_writer(magic, 0)(5, 1000, b"k", b"v") == known
    assert read_messages(known) == [LegacyMessage(5, magic, 0, 1000 if magic else -1, b"k", b"v")]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("key", [None, b"", b"key"])
@pytest.mark.parametrize("value", [None, b"", b"value"])
def test_written_messages_are_read_again(magic: int, key: bytes | None, value: bytes | None) -> None:
    write = make_entry_writer(magic, LOG_APPEND_TIME)
    data = write(1 << 40, 77, key, value) + write(-3, 78, value, key)
    attributes = LOG_APPEND_TIME if magic else 0
    times = (77, 78) if magic else (-1, -1)
    assert read_messages(data) == [
        LegacyMessage(1 << 40, magic, attributes, times[0], key, value),
        LegacyMessage(-3, magic, attributes, times[1], value, key),
    ]


@pytest.mark.parametrize(
    ("label", "data", "code"),
    [
        ("no message is so short", struct.pack(">qi", 0, 13) + bytes(13), ErrorCode.CORRUPT_MESSAGE),
        ("a negative size", struct.pack(">qi", 0, -1), ErrorCode.CORRUPT_MESSAGE),
        ("one bit is wrong", V1[:-1] + b"w", ErrorCode.CORRUPT_MESSAGE),
        ("a format to come", make_entry(struct.pack(">bbqii", 3, 0, 0, 0, 0)), ErrorCode.CORRUPT_MESSAGE),
        ("too short for its format", make_entry(struct.pack(">bbii", 1, 0, 0, 0)), ErrorCode.CORRUPT_MESSAGE),
        ("the message is cut off", V0[:-1], ErrorCode.INVALID_RECORD),
        ("the entry is cut off", V0 + V0[:11], ErrorCode.INVALID_RECORD),
        ("a key beyond the end", make_entry(struct.pack(">bbii", 0, 0, 5, 0)), ErrorCode.INVALID_RECORD),
        ("no room for a length", make_entry(struct.pack(">bbi", 0, 0, 3) + b"keyv"), ErrorCode.INVALID_RECORD),
        ("bytes behind the value", make_entry(struct.pack(">bbii", 0, 0, 0, 0) + b"x"), ErrorCode.INVALID_RECORD),
    ],
)
def test_malformed_message_sets_are_refused(label: str, data: bytes, code: ErrorCode) -> None:
    assert catch_code(data) == code, label


def test_a_message_may_have_a_size_and_no_more() -> None:
    assert read_messages(V0, max_message_bytes=len(V0))
    assert catch_code(V0, max_message_bytes=len(V0) - 1) == ErrorCode.MESSAGE_TOO_LARGE


# Wrappers


def make_inner(magic: int, *offsets: int) -> bytes:
    write = make_entry_writer(magic, 0)
    return b"".join(write(offset, 1000 + offset, b"k", b"v%d" % offset) for offset in offsets)


def unwrap_first(data: bytes, max_bytes: int = NO_LIMIT) -> list[LegacyMessage]:
    (wrapper,) = read_messages(data)
    return list(unwrap_messages(wrapper, max_bytes))


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_is_unpacked(magic: int, codec: int) -> None:
    messages = unwrap_first(wrap_messages(magic, codec, 9, 5000, make_inner(magic, 0, 1, 2)))
    times = (1000, 1001, 1002) if magic else (-1, -1, -1)
    assert [(message.offset, message.timestamp, message.value) for message in messages] == [
        (0, times[0], b"v0"),
        (1, times[1], b"v1"),
        (2, times[2], b"v2"),
    ]


def test_the_time_of_the_log_is_that_of_the_wrapper() -> None:
    messages = unwrap_first(wrap_messages(1, GZIP | LOG_APPEND_TIME, 1, 5000, make_inner(1, 0, 1)))
    assert [(message.timestamp, message.is_log_append_time) for message in messages] == [(5000, True), (5000, True)]


def test_some_librdkafkas_write_a_wrapper_without_an_offset() -> None:
    assert len(unwrap_first(wrap_messages(1, GZIP, 0, 5000, make_inner(1, 0, 1)))) == 2
    assert len(unwrap_first(wrap_messages(0, GZIP, 1, -1, make_inner(0, 7, 8)))) == 2


@pytest.mark.parametrize(
    ("label", "data"),
    [
        ("a wrapper in a wrapper", wrap_messages(1, GZIP, 0, 0, wrap_messages(1, GZIP, 0, 0, make_inner(1, 0)))),
        ("another format inside", wrap_messages(1, GZIP, 0, 0, make_inner(0, 0))),
        ("nothing inside", wrap_messages(1, GZIP, 0, 0, b"")),
        ("an offset below that inside", wrap_messages(1, GZIP, 1, 0, make_inner(1, 0, 1, 2))),
        ("zstd", wrap_messages(1, ZSTD, 0, 0, make_inner(1, 0))),
        ("a codec that is none", make_entry_writer(1, 6)(0, 0, None, make_inner(1, 0))),
        ("no value", make_entry_writer(1, GZIP)(0, 0, None, None)),
        ("cut off inside", wrap_messages(1, GZIP, 0, 0, make_inner(1, 0)[:-1])),
    ],
)
def test_malformed_wrappers_are_refused(label: str, data: bytes) -> None:
    with pytest.raises(KafkaError) as problem:
        unwrap_first(data)
    assert problem.value.code == ErrorCode.INVALID_RECORD, label


def test_a_wrong_crc_inside_is_found() -> None:
    with pytest.raises(KafkaError) as problem:
        unwrap_first(wrap_messages(0, GZIP, 0, -1, V0[:-1] + b"w"))
    assert problem.value.code == ErrorCode.CORRUPT_MESSAGE


def test_a_bad_compression_is_malformed_and_a_bomb_too_large() -> None:
    with pytest.raises(MalformedError):
        unwrap_first(make_entry_writer(1, GZIP)(0, 0, None, gzip.compress(b"x")[:-3]))
    with pytest.raises(TooLargeError):
        unwrap_first(wrap_messages(1, GZIP, 0, 0, make_inner(1, 0) * 1000), max_bytes=1000)


# The checksum of LZ4 frames


@pytest.mark.parametrize(("data", "known"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)])
def test_xxh32_of_little(data: bytes, known: int) -> None:
    assert short_xxh32(data) == known


def test_lz4_in_format_0_has_the_checksum_that_old_clients_expect() -> None:
    (old,), (new,) = (read_messages(wrap_messages(magic, LZ4, 0, 0, make_inner(magic, 0))) for magic in (0, 1))
    assert old.value is not None
    assert new.value is not None
    # Flags 0x60, blocks of 64 KiB: the checksum with and without the four bytes in front.
    assert (old.value[:6], old.value[6]) == (bytes.fromhex("04224d186040"), 0x1A)
    assert (new.value[:6], new.value[6]) == (bytes.fromhex("04224d186040"), 0x82)
    # Whichever stands there, format 0 is read.
    assert unwrap_first(make_entry_writer(0, LZ4)(0, 0, None, use_specified_checksum(old.value)))
    with pytest.raises(MalformedError):
        unwrap_first(make_entry_writer(1, LZ4)(0, 0, None, use_old_checksum(new.value)))


@pytest.mark.parametrize(
    "frame", [b"", b"\x04\x22\x4d\x18\x60\x40", b"\x04\x22\x4d\x18\x68\x40\0\0", b"\x04\x22\x4d\x18\x61" + bytes(20)]
)
def test_a_frame_without_room_for_its_checksum_is_malformed(frame: bytes) -> None:
    with pytest.raises(MalformedError):
        use_old_checksum(frame)


# Anything


def test_nothing_but_the_errors_named_comes_out() -> None:
    rng = random.Random(4)
    seeds = [
        make_inner(0, 0, 1),
        make_inner(1, 0, 1),
        *(wrap_messages(magic, codec, 2, 5, make_inner(magic, 0, 1, 2)) for magic in (0, 1) for codec in (1, 2, 3)),
    ]
    for _ in range(3000):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        mended = make_entry(bytes(data[16:])) if rng.random() < 0.7 else bytes(data)[: rng.randrange(len(data))]
        with suppress(KafkaError, MalformedError):
            for message in read_message_set(mended):
                list(unwrap_messages(message, 100_000))
