"""LegacyMessage sets to batches and back: the rules of Kafka 3.9."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from zlib import crc32

import pytest

from kafkacompat.wire.conversion import (
    ConvertedMessages,
    SizeLimits,
    TargetCodec,
    down_convert,
    is_message_set,
    up_convert,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.message_set import (
    LegacyMessage,
    make_entry_writer,
    read_message_set,
    unwrap_messages,
    wrap_messages,
)
from kafkacompat.wire.record_batch import (
    HEADER_SIZE,
    LOG_APPEND_TIME,
    NewRecord,
    Record,
    assemble_batch,
    build_batch,
    check_records,
    read_header,
    read_records,
)

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
NO_LIMIT = 1 << 30
PRODUCERS = TargetCodec(None, {})

each_magic = pytest.mark.parametrize("magic", [0, 1])
each_old_codec = pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4])


# Up


def make_messages(magic: int, count: int, attributes: int = 0) -> bytes:
    write = make_entry_writer(magic, attributes)
    return b"".join(write(index, 1000 + index, b"k%d" % index, b"v%d" % index) for index in range(count))


def convert_up(data: bytes, target: TargetCodec = PRODUCERS, max_bytes: int = NO_LIMIT) -> bytes:
    return up_convert(data, target, SizeLimits(max_bytes, NO_LIMIT))


def up_refusal(data: bytes) -> ErrorCode:
    with pytest.raises(KafkaError) as problem:
        up_convert(data, PRODUCERS, SizeLimits(NO_LIMIT, 10_000))
    return problem.value.code


@each_magic
@each_old_codec
def test_a_set_becomes_one_batch_of_its_codec(magic: int, codec: int) -> None:
    data = make_messages(magic, 300)
    batch = convert_up(wrap_messages(magic, codec, 299, 1299, data) if codec else data)
    header = read_header(batch)
    assert (header.codec, header.record_count, header.last_offset_delta) == (codec, 300, 299)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert (header.base_timestamp, header.max_timestamp) == ((1000, 1299) if magic else (-1, -1))
    check_records(batch, header, keys_required=True, max_decompressed_bytes=NO_LIMIT)
    assert list(read_records(batch)) == [
        Record(index, 1000 + index if magic else -1, b"k%d" % index, b"v%d" % index, []) for index in range(300)
    ]


@pytest.mark.parametrize("codec", [0, GZIP, ZSTD])
def test_a_topic_may_have_a_codec_of_its_own(codec: int) -> None:
    for data in (make_messages(1, 5), wrap_messages(1, SNAPPY, 4, 0, make_messages(1, 5))):
        batch = convert_up(data, TargetCodec(codec, {GZIP: 1}))
        assert (read_header(batch).codec, len(list(read_records(batch)))) == (codec, 5)


def test_the_type_of_the_time_goes_along_for_the_log_to_judge() -> None:
    for data in (
        make_messages(1, 2, LOG_APPEND_TIME),
        wrap_messages(1, GZIP | LOG_APPEND_TIME, 1, 1001, make_messages(1, 2)),
    ):
        assert read_header(convert_up(data)).is_log_append_time
    assert not read_header(convert_up(make_messages(1, 2))).is_log_append_time


def test_format_0_has_no_type_of_the_time() -> None:
    """The bit means nothing there, and clients may set it."""
    data = bytearray(make_messages(0, 1))
    data[17] |= LOG_APPEND_TIME
    data[12:16] = crc32(data[16:]).to_bytes(4, "big")
    for messages in (data, wrap_messages(0, GZIP, 0, -1, data)):
        header = read_header(convert_up(bytes(messages)))
        assert (header.is_log_append_time, header.max_timestamp) == (False, -1)


def test_no_time_can_be_of_the_log_or_before_1970() -> None:
    assert up_refusal(make_entry_writer(1, LOG_APPEND_TIME)(0, -1, None, b"v")) == ErrorCode.INVALID_TIMESTAMP
    assert up_refusal(make_entry_writer(1, 0)(0, -2, None, b"v")) == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (make_messages(0, 1) + make_messages(1, 1), ErrorCode.INVALID_RECORD),
        (make_messages(0, 1) + wrap_messages(0, GZIP, 0, -1, make_messages(0, 1)), ErrorCode.INVALID_RECORD),
        (wrap_messages(0, GZIP, 0, -1, make_messages(0, 1)) + make_messages(0, 1), ErrorCode.INVALID_RECORD),
        (make_entry_writer(1, GZIP)(0, 0, None, b"no gzip"), ErrorCode.INVALID_RECORD),
        (wrap_messages(1, GZIP, 0, 0, make_messages(1, 1000)), ErrorCode.MESSAGE_TOO_LARGE),
        (make_messages(0, 1)[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE),
    ],
    ids=["empty", "two formats", "wrapper behind", "more behind", "no gzip", "too large", "crc"],
)
def test_bad_message_sets_are_refused(data: bytes, code: ErrorCode) -> None:
    assert up_refusal(data) == code


def test_sets_and_batches_are_distinguished_by_their_format() -> None:
    assert is_message_set(make_messages(0, 1))
    assert is_message_set(make_messages(1, 1))
    assert is_message_set(b"")
    assert not is_message_set(build_batch([(1000, None, b"v", [])]))


# Down


def make_batch(count: int = 3, base_offset: int = 10, codec: int = 0, **kw: bool) -> bytes:
    given: Sequence[NewRecord] = [(1000 + n, b"k%d" % n, b"v%d" % n, [("h", b"x")]) for n in range(count)]
    return build_batch(given, base_offset=base_offset, codec=codec, **kw)


def convert_down(data: bytes, magic: int = 1, first_offset: int = 0, max_bytes: int = NO_LIMIT) -> ConvertedMessages:
    return down_convert(data, magic, first_offset, max_bytes, NO_LIMIT, NO_LIMIT)


def down_refusal(data: bytes) -> ErrorCode:
    with pytest.raises(KafkaError) as problem:
        down_convert(data, 1, 0, NO_LIMIT, 10_000, NO_LIMIT)
    return problem.value.code


def read_messages(data: bytes) -> list[LegacyMessage]:
    return list(read_message_set(data))


def list_offsets(converted: ConvertedMessages) -> list[int]:
    return [message.offset for message in read_messages(converted.data)]


@each_magic
def test_records_become_messages_without_headers(magic: int) -> None:
    converted = convert_down(make_batch(2), magic)
    times = [1000, 1001] if magic else [-1, -1]
    assert read_messages(converted.data) == [
        LegacyMessage(10, magic, 0, times[0], b"k0", b"v0"),
        LegacyMessage(11, magic, 0, times[1], b"k1", b"v1"),
    ]
    assert converted.next_offset == 12


@each_magic
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_a_compressed_batch_becomes_a_wrapper_with_all_its_records(magic: int, codec: int) -> None:
    (wrapper,) = read_messages(convert_down(make_batch(3, codec=codec), magic, first_offset=11).data)
    assert (wrapper.offset, wrapper.codec, wrapper.timestamp) == (12, codec, 1002 if magic else -1)
    inside = list(unwrap_messages(wrapper, NO_LIMIT))
    assert [message.offset for message in inside] == ([0, 1, 2] if magic else [10, 11, 12])
    assert [message.value for message in inside] == [b"v0", b"v1", b"v2"]


def test_the_time_of_the_log_is_every_messages() -> None:
    for codec in (0, GZIP):
        header = read_header(make_batch(2, codec=codec))
        stamped = header._replace(attributes=header.attributes | LOG_APPEND_TIME, max_timestamp=7000)
        converted = convert_down(assemble_batch(stamped, make_batch(2, codec=codec)[61:]))
        assert all(
            message.is_log_append_time and message.timestamp == 7000 for message in read_messages(converted.data)
        )
        assert not any(
            message.attributes & LOG_APPEND_TIME for message in read_messages(convert_down(make_batch(), 0).data)
        )


def test_nothing_in_front_of_the_offset_is_sent_uncompressed() -> None:
    assert list_offsets(convert_down(make_batch(3), first_offset=11)) == [11, 12]
    assert convert_down(make_batch(3), first_offset=13)[:2] == (b"", 13)


@each_magic
def test_a_wrapper_before_the_offset_is_skipped(magic: int) -> None:
    """Compaction may take the last records of a batch and leave its end where it was."""
    compacted = make_batch(3, codec=GZIP)
    compacted = assemble_batch(read_header(compacted)._replace(last_offset_delta=9), compacted[HEADER_SIZE:])
    assert len(read_messages(convert_down(compacted, magic, first_offset=12).data)) == 1
    assert convert_down(compacted, magic, first_offset=13)[:2] == (b"", 20)


def test_no_batch_is_begun_once_enough_was_unpacked() -> None:
    """A few bytes of each of many batches may stand for a hundred megabytes."""
    data = b"".join(make_batch(100, base_offset=100 * number, codec=GZIP) for number in range(10))
    converted = down_convert(data, 1, 0, NO_LIMIT, NO_LIMIT, 3000)
    assert converted.next_offset == 200
    assert converted.unpacked_bytes == 2 * len(make_batch(100)[HEADER_SIZE:])


def test_control_batches_are_left_out_and_passed() -> None:
    control = make_batch(1, base_offset=13, control=True)
    assert list_offsets(convert_down(make_batch(3) + control + make_batch(1, base_offset=14))) == [10, 11, 12, 14]
    assert convert_down(control, first_offset=13) == ConvertedMessages(b"", 14, 0)


def test_a_batch_without_records_is_passed() -> None:
    for codec in (0, GZIP):
        header = read_header(make_batch(3, codec=codec))._replace(record_count=0)
        empty = assemble_batch(header, b"" if not codec else make_batch(1, codec=GZIP)[61:])
        assert convert_down(empty)[:2] == (b"", 13)


def test_a_batch_that_is_cut_off_waits_for_the_next_fetch() -> None:
    data = make_batch(3) + make_batch(3, base_offset=13)
    assert list_offsets(convert_down(data[:-1])) == [10, 11, 12]
    assert convert_down(data[:-1]).next_offset == 13


def test_the_first_batch_is_whole_and_later_ones_are_cut_at_the_limit() -> None:
    data = make_batch(3) + make_batch(3, base_offset=13) + make_batch(3, base_offset=16)
    size = len(convert_down(make_batch(3)).data)
    assert convert_down(data, max_bytes=1) == convert_down(make_batch(3))
    cut = convert_down(data, max_bytes=size + size // 2)
    assert (len(cut.data), cut.next_offset) == (size + size // 2, 16)
    assert cut.data == convert_down(data).data[: len(cut.data)]
    assert len(convert_down(data, max_bytes=size * 3).data) == size * 3


def test_zstd_is_refused_unless_something_can_be_read_before_it() -> None:
    assert down_refusal(make_batch(codec=ZSTD)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert down_refusal(make_batch(1, control=True) + make_batch(codec=ZSTD)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    converted = convert_down(make_batch(3) + make_batch(3, base_offset=13, codec=ZSTD))
    assert (list_offsets(converted), converted.next_offset) == ([10, 11, 12], 13)


def test_a_batch_that_cannot_be_read_is_corrupt() -> None:
    header = read_header(make_batch())
    broken = [
        assemble_batch(header._replace(record_count=4), make_batch()[61:]),
        assemble_batch(header._replace(attributes=GZIP), make_batch()[61:]),
        assemble_batch(header, b"\xff" * 40),
        assemble_batch(header, b"\x7e" + bytes(3)),
        assemble_batch(header._replace(base_timestamp=(1 << 63) - 1), make_batch()[61:]),
        make_batch()[:8] + bytes(4) + make_batch()[12:],
    ]
    for data in broken:
        assert down_refusal(data) == ErrorCode.CORRUPT_MESSAGE
        assert list_offsets(convert_down(make_batch() + data)) == [10, 11, 12]
    assert down_refusal(build_batch([(0, None, bytes(20_000), [])], codec=GZIP)) == ErrorCode.CORRUPT_MESSAGE


def test_nothing_but_errors_of_the_protocol_comes_out() -> None:
    rng = random.Random(9)
    for _ in range(3000):
        codec = rng.randrange(4)
        data = bytearray(make_batch(rng.randrange(1, 6), codec=codec))
        for _ in range(rng.randrange(1, 5)):
            data[rng.randrange(12, len(data))] = rng.randrange(256)
        with suppress(KafkaError):
            down_convert(data, rng.randrange(2), rng.randrange(20), 1000, 100_000, 100_000)


@each_magic
@each_old_codec
def test_down_and_up_conversion_keeps_all_fields_of_the_old_format(magic: int, codec: int) -> None:
    rng = random.Random(magic * 10 + codec)
    blobs = [None, b"", b"x" * 70, rng.randbytes(9000)]
    given: list[NewRecord] = [
        (1 << 40, rng.choice(blobs), rng.choice(blobs), [("h", None)]),
        *((rng.randrange(1 << 41), rng.choice(blobs), rng.choice(blobs), []) for _ in range(200)),
    ]
    converted = convert_down(build_batch(given, codec=codec), magic)
    records = [
        (record.timestamp, record.key, record.value, record.headers)
        for record in read_records(convert_up(converted.data))
    ]
    assert records == [(timestamp if magic else -1, key, value, []) for timestamp, key, value, _ in given]
