"""The check of a produced batch, with either form of the walk, against a reader that decodes each field."""

from __future__ import annotations

import random
from functools import cache

import pytest

from kafkacompat.wire.compression import compress
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import MalformedError, encode_varint
from kafkacompat.wire.record_batch import (
    HEADER_SIZE,
    BatchHeader,
    InvalidRecordsError,
    NewRecord,
    assemble_batch,
    build_batch,
    check_produce_version,
    check_records,
    read_header,
    read_records,
)
from tests.wire.random_messages import seeded_random

pytestmark = pytest.mark.usefixtures("each_form")
BASE = 1_700_000_000_000
LIMIT = 10_000_000


def check_batch(batch: bytes, *, keys: bool = False, oldest: int | None = None, newest: int | None = None) -> int:
    return check_records(
        batch,
        read_header(batch),
        keys_required=keys,
        max_decompressed_bytes=LIMIT,
        oldest_timestamp=oldest,
        newest_timestamp=newest,
    )


def catch_refusal(
    batch: bytes, *, keys: bool = False, oldest: int | None = None, newest: int | None = None
) -> InvalidRecordsError:
    with pytest.raises(InvalidRecordsError) as caught:
        check_batch(batch, keys=keys, oldest=oldest, newest=newest)
    return caught.value


def batch_of(timestamps: list[int], *, key: bytes | None = b"k", codec: int = 0) -> bytes:
    return build_batch([(timestamp, key, b"v", []) for timestamp in timestamps], codec=codec)


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("count", [1, 63, 64, 65, 128, 8191, 8192, 8193, 20_000])
def test_sound_batches_pass_whatever_their_codec_and_size(codec: int, count: int) -> None:
    assert check_batch(_build_sound_batch(count, codec), keys=True) == BASE + count - 1


@cache
def _build_sound_batch(count: int, codec: int) -> bytes:
    """Return a batch that both forms of the walk check; building one takes longer than the check."""
    return batch_of([BASE + index for index in range(count)], codec=codec)


@pytest.mark.parametrize("delta", [0, 63, 64, 8191, 8192, 10**6, 10**9, 2**31, 2**40, -1, -64, -65, -8193, -(10**9)])
def test_the_largest_timestamp_is_found(delta: int) -> None:
    assert check_batch(batch_of([BASE, BASE + delta, BASE])) == max(BASE, BASE + delta)


def test_the_largest_timestamp_is_found_though_all_lie_before_the_first_claimed() -> None:
    batch = batch_of([BASE - 5, BASE - 9])
    header = read_header(batch)._replace(base_timestamp=BASE)
    body = b"".join(_make_record(index, delta) for index, delta in enumerate((-5, -9)))
    assert check_batch(assemble_batch(header, body)) == BASE - 5


def _make_record(index: int, timestamp_delta: int = 0, key: bytes | None = None) -> bytes:
    sized_key = encode_varint(-1) if key is None else encode_varint(len(key)) + key
    body = (
        b"\0" + encode_varint(timestamp_delta) + encode_varint(index) + sized_key + encode_varint(-1) + encode_varint(0)
    )
    return encode_varint(len(body)) + body


def _make_batch(body: bytes, count: int) -> bytes:
    header = read_header(batch_of([BASE]))
    return assemble_batch(header._replace(record_count=count, last_offset_delta=count - 1), body)


def _make_record_of(*fields: bytes) -> bytes:
    """Return the first record of a batch, of these fields after the offset."""
    body = b"\0\0\0" + b"".join(fields)
    return encode_varint(len(body)) + body


NULL, HUGE = encode_varint(-1), encode_varint(2**31 - 1)
LYING = {
    "a key longer than its record": _make_record_of(encode_varint(100), NULL, encode_varint(0)),
    "a key that leads into the next record": _make_record_of(encode_varint(5), NULL, encode_varint(0)),
    "a key shorter than it is": _make_record_of(encode_varint(1), b"key", NULL, encode_varint(0)),
    "a key of the largest length": _make_record_of(HUGE, NULL, encode_varint(0)),
    "a key whose length is too long a number": _make_record_of(b"\x80" * 5 + b"\0", NULL, encode_varint(0)),
    "a value longer than its record": _make_record_of(NULL, encode_varint(100), encode_varint(0)),
    "a value shorter than it is": _make_record_of(NULL, encode_varint(2), b"value", encode_varint(0)),
    "a value of the largest length": _make_record_of(NULL, HUGE, encode_varint(0)),
    "fewer headers than there are": _make_record_of(
        NULL, NULL, encode_varint(1), encode_varint(1), b"a", NULL, encode_varint(1), b"b", NULL
    ),
    "no headers where there is one": _make_record_of(NULL, NULL, encode_varint(0), encode_varint(1), b"a", NULL),
    "more headers than there are": _make_record_of(NULL, NULL, encode_varint(2), encode_varint(1), b"a", NULL),
    "more headers than bytes": _make_record_of(NULL, NULL, HUGE),
    "a negative number of headers": _make_record_of(NULL, NULL, encode_varint(-1)),
    "a header without a name": _make_record_of(NULL, NULL, encode_varint(1), NULL, NULL),
    "a header's name longer than its record": _make_record_of(
        NULL, NULL, encode_varint(1), encode_varint(9), b"a", NULL
    ),
    "a header's value longer than its record": _make_record_of(
        NULL, NULL, encode_varint(1), encode_varint(1), b"a", encode_varint(9), b"b"
    ),
    "bytes after the headers": _make_record_of(NULL, NULL, encode_varint(0), b"?"),
    "no bytes for the headers": _make_record_of(NULL, NULL),
    "an empty record": encode_varint(0),
    "a record one byte shorter than it is": encode_varint(5) + _make_record_of(NULL, NULL, encode_varint(0))[1:],
    "a timestamp of eleven bytes": encode_varint(16) + b"\0" + b"\x80" * 10 + b"\0\0" + NULL + NULL + b"\0",
    "an offset of six bytes": encode_varint(11) + b"\0\0" + b"\x80" * 5 + b"\0" + NULL + NULL + b"\0",
}
SOUND = {
    "any negative length is null": _make_record_of(encode_varint(-2), encode_varint(-5000), encode_varint(0)),
    "a length of more bytes than it needs": _make_record_of(b"\x80\x80\x80\x80\0", NULL, encode_varint(0)),
    "a length with bits beyond 32": _make_record_of(b"\x80\x80\x80\x80\x70", NULL, encode_varint(0)),
    "a record's length with bits beyond 32": b"\x8c\x80\x80\x80\x70"
    + _make_record_of(NULL, NULL, encode_varint(0))[1:],
    "a timestamp with bits beyond 64": encode_varint(15) + b"\0" + b"\x80" * 9 + b"\x7e\0" + NULL + NULL + b"\0",
    "headers, one without a value": _make_record_of(
        NULL, NULL, encode_varint(2), encode_varint(1), b"a", NULL, encode_varint(0), encode_varint(1), b"b"
    ),
    "a header's name that is no UTF-8": _make_record_of(NULL, NULL, encode_varint(1), encode_varint(1), b"\xff", NULL),
}


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("count", [1, 2, 70])
@pytest.mark.parametrize("record", LYING.values(), ids=LYING.keys())
def test_a_record_whose_lengths_lie_is_refused(record: bytes, count: int, codec: int) -> None:
    problem = catch_refusal(_make_packed_batch(record, count, codec))
    assert problem.code is ErrorCode.INVALID_RECORD
    assert problem.detail


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("count", [1, 2, 70])
@pytest.mark.parametrize("record", SOUND.values(), ids=SOUND.keys())
def test_batches_that_kafka_accepts_pass(record: bytes, count: int, codec: int) -> None:
    assert check_batch(_make_packed_batch(record, count, codec)) == BASE


def _make_packed_batch(record: bytes, count: int, codec: int) -> bytes:
    body = b"".join([record, *map(_make_record, range(1, count))])
    header = read_header(batch_of([BASE]))
    header = header._replace(attributes=codec, record_count=count, last_offset_delta=count - 1)
    return assemble_batch(header, compress(codec, body))


@pytest.mark.parametrize("at", ["key", "value", "headers"])
@pytest.mark.parametrize("index", [0, 10, 63, 64, 127, 140])
def test_among_many_alike_each_length_counts(index: int, at: str) -> None:
    records = [_make_record(number, key=b"k" * 70) for number in range(150)]
    assert check_batch(_make_batch(b"".join(records), 150)) == BASE
    damaged = bytearray(records[index])
    damaged[{"key": -74, "value": -2, "headers": -1}[at]] ^= 3
    body = b"".join([*records[:index], damaged, *records[index + 1 :]])
    assert catch_refusal(_make_batch(body, 150)).code is ErrorCode.INVALID_RECORD


BROKEN = {
    "a missing record": _make_batch(_make_record(0), 2),
    "a record too many": _make_batch(_make_record(0) + _make_record(1), 1),
    "no record at all": _make_batch(b"", 1),
    "offsets that start at one": _make_batch(_make_record(1), 1),
    "offsets with a gap": _make_batch(_make_record(0) + _make_record(2), 2),
    "offsets that stand still": _make_batch(_make_record(0) + _make_record(0), 2),
    "a negative offset": _make_batch(_make_record(0) + _make_record(-1), 2),
    "a gap behind the first block": _make_batch(b"".join(_make_record(i + (i > 70)) for i in range(100)), 100),
    "a negative length": _make_batch(encode_varint(-7) + _make_record(0)[1:], 1),
    "a negative length in between": _make_batch(
        _make_record(0) + encode_varint(-7) + _make_record(1)[1:] + _make_record(2), 3
    ),
    "a length beyond the batch": _make_batch(encode_varint(100) + _make_record(0)[1:], 1),
    "a length far beyond the batch": _make_batch(encode_varint(2**31 - 1) + _make_record(0)[1:], 1),
    "a length cut off": _make_batch(b"\xff", 1),
    "a varint without an end": _make_batch(b"\x80" * 12, 1),
    "a batch cut off": batch_of([BASE, BASE])[:-1],
    "a gzip body that is none": assemble_batch(read_header(batch_of([BASE], codec=1)), b"no gzip data"),
    "an unknown codec": assemble_batch(read_header(batch_of([BASE]))._replace(attributes=5), _make_record(0)),
}


@pytest.mark.parametrize("batch", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_batch_is_refused(batch: bytes) -> None:
    problem = catch_refusal(batch)
    assert problem.code is ErrorCode.INVALID_RECORD
    assert problem.detail
    assert problem.record_errors == []


@pytest.mark.parametrize("size", [5, 100])
@pytest.mark.parametrize("index", [10, 70])
def test_among_many_alike_each_byte_of_a_length_and_of_an_offset_counts(index: int, size: int) -> None:
    records = [_make_record(number, key=bytes(size)) for number in range(128)]
    assert check_batch(_make_batch(b"".join(records), 128)) == BASE
    offset_at = len(encode_varint(len(records[index]))) + 2
    for at in (*range(offset_at - 2), *range(offset_at, offset_at + len(encode_varint(index)))):
        damaged = bytearray(records[index])
        damaged[at] ^= 2
        body = b"".join([*records[:index], damaged, *records[index + 1 :]])
        assert catch_refusal(_make_batch(body, 128)).code is ErrorCode.INVALID_RECORD


def test_bytes_after_the_first_of_a_timestamp_are_no_offset() -> None:
    # In zig-zag 0x80 and the two bytes of the offset.
    deltas = [0] * 64 + [index << 7 for index in range(64, 128)]
    assert check_batch(_make_batch(b"".join(map(_make_record, range(128), deltas)), 128)) == BASE + deltas[-1]


def test_a_bomb_is_too_large() -> None:
    bomb = build_batch([(BASE, None, bytes(LIMIT), [])], codec=4)
    assert catch_refusal(bomb).code is ErrorCode.MESSAGE_TOO_LARGE


def _make_claiming_batch(count: int, batch: bytes, body: bytes | None = None) -> bytes:
    header = read_header(batch)._replace(record_count=count, last_offset_delta=count - 1)
    return assemble_batch(header, batch[HEADER_SIZE:] if body is None else body)


@pytest.mark.parametrize("codec", [0, 1])
def test_records_that_have_no_room_are_not_looked_for(codec: int) -> None:
    problem = catch_refusal(_make_claiming_batch(1000, build_batch([(BASE, None, b"v", [])], codec=codec)))
    assert problem.code is ErrorCode.INVALID_RECORD
    assert "1000 records cannot lie in" in problem.detail


def test_records_beyond_the_unpacked_limit_are_not_unpacked() -> None:
    problem = catch_refusal(
        _make_claiming_batch(LIMIT // 7 + 1, build_batch([(BASE, None, b"v", [])], codec=1), b"no gzip data")
    )
    assert problem.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("timestamp", [BASE, BASE + 100, BASE + 10**6])
@pytest.mark.parametrize("index", [0, 5, 64, 99, 8200])
def test_records_without_a_key_are_named(index: int, timestamp: int) -> None:
    records: list[NewRecord] = [(BASE, b"", b"v", [])] * 8300
    records[index] = (timestamp, None, b"v", [])
    problem = catch_refusal(build_batch(records), keys=True)
    assert problem.code is ErrorCode.INVALID_RECORD
    assert [number for number, _ in problem.record_errors] == [index]
    assert "needs a key" in problem.detail


def test_no_more_than_a_thousand_records_are_named() -> None:
    assert len(catch_refusal(batch_of([BASE] * 3000, key=None), keys=True).record_errors) == 1000
    assert len(catch_refusal(batch_of([BASE] * 3000), newest=BASE - 1).record_errors) == 1000


def test_records_out_of_the_time_allowed_are_named() -> None:
    problem = catch_refusal(batch_of([BASE, BASE + 11, BASE - 11, BASE + 10]), oldest=BASE - 10, newest=BASE + 10)
    assert problem.code is ErrorCode.INVALID_TIMESTAMP
    assert [number for number, _ in problem.record_errors] == [1, 2]


def test_allowed_times_and_missing_times_pass() -> None:
    assert check_batch(batch_of([BASE - 10, BASE + 10, -1]), oldest=BASE - 10, newest=BASE + 10) == BASE + 10
    assert check_batch(batch_of([-1, -1]), oldest=BASE, newest=BASE) == -1


def test_a_bad_time_counts_more_than_a_missing_key() -> None:
    assert catch_refusal(batch_of([BASE], key=None), keys=True, newest=BASE - 1).code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize(("base", "delta"), [(2**63 - 1, 1), (-(2**63), -1)])
def test_a_time_that_fits_no_field_is_refused(base: int, delta: int) -> None:
    batch = assemble_batch(read_header(batch_of([BASE]))._replace(base_timestamp=base), _make_record(0, delta))
    assert catch_refusal(batch).code is ErrorCode.INVALID_TIMESTAMP
    assert catch_refusal(batch, newest=2**64).code is ErrorCode.INVALID_TIMESTAMP


def _decode_batch(batch: bytes, header: BatchHeader) -> tuple[int, list[int]] | None:
    """Return (largest timestamp, indexes of records without a key), or None for a batch to be refused."""
    try:
        records = list(read_records(batch))
    except MalformedError:
        return None
    if [record.offset for record in records] != list(range(header.record_count)):
        return None
    return max(record.timestamp for record in records), [at for at, record in enumerate(records) if record.key is None]


def _random_batch(rng: random.Random) -> bytes:
    spread = rng.choice((0, 3, 60, 100, 10**4, 10**9, 2**45))
    records: list[NewRecord] = []
    key_sizes, value_sizes = [0, 3, 70], [0, 5, 50, 60, 100, 200]
    if rng.random() < 0.5:
        key_sizes, value_sizes = [rng.choice(key_sizes)], [rng.choice(value_sizes)]
    for _ in range(rng.choice((1, 2, 5, 63, 64, 65, 130, 700))):
        key = None if rng.random() < 0.01 else bytes(rng.choice(key_sizes))
        value = rng.randbytes(rng.choice(value_sizes))
        headers = [] if rng.random() < 0.95 else [("name", b"content"), ("", None)]
        records.append((BASE + rng.randint(-spread, spread), key, value, headers))
    if rng.random() < 0.2:
        records[0] = (BASE, b"k", bytes(9000), [])
    return build_batch(records)


def _damage_batch(rng: random.Random, batch: bytes) -> bytes:
    data = bytearray(batch)
    for _ in range(rng.choice((0, 0, 1, 1, 3))):
        data[rng.randrange(HEADER_SIZE, len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    if rng.random() < 0.1:
        data[57:61] = (read_header(data).record_count + rng.choice((-1, 1))).to_bytes(4, "big")
    return bytes(data)


def test_the_check_agrees_with_a_reader_that_decodes_each_field() -> None:
    rng = seeded_random()
    for _ in range(600):
        batch = _damage_batch(rng, _random_batch(rng))
        header, keys = read_header(batch), rng.random() < 0.5
        expected = _decode_batch(batch, header)
        if expected is None:
            assert catch_refusal(batch, keys=keys).record_errors == []
        elif keys and expected[1]:
            assert [index for index, _ in catch_refusal(batch, keys=True).record_errors] == expected[1]
        else:
            assert check_batch(batch, keys=keys) == expected[0]


@pytest.mark.parametrize("records", [None, b"", memoryview(b"")])
def test_a_partition_without_records_is_refused(records: bytes | None) -> None:
    with pytest.raises(InvalidRecordsError) as caught:
        check_produce_version(records, 9)
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(("version", "codec"), [(7, 4), (13, 4), (3, 3), (6, 0)])
def test_a_codec_that_the_version_knows_passes(version: int, codec: int) -> None:
    batch = batch_of([BASE], codec=codec)
    assert check_produce_version(batch, version) is batch
    assert check_produce_version(b"short", version) == b"short"


def test_zstd_is_refused_of_clients_too_old_for_it() -> None:
    with pytest.raises(KafkaError) as caught:
        check_produce_version(batch_of([BASE], codec=4), 6)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
