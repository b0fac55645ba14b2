"""Batches: their known bytes, the records read from them, and refused ones."""

from __future__ import annotations

import pytest

from kafkacompat.wire.primitives import MalformedError, encode_varint
from kafkacompat.wire.record_batch import (
    CONTROL,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    NewRecord,
    Record,
    assemble_batch,
    build_batch,
    crc_matches,
    read_body,
    read_header,
    read_records,
    recompress_batch,
    split_batches,
)
from tests.wire.random_messages import seeded_random

RECORDS: list[NewRecord] = [
    (1000, b"key", b"value", [("name", b"content"), ("é", None), ("", b"")]),
    (990, None, b"", []),
    (1005, b"", None, []),
]
READ = [
    Record(70, 1000, b"key", b"value", [("name", b"content"), ("é", None), ("", b"")]),
    Record(71, 990, None, b"", []),
    Record(72, 1005, b"", None, []),
]
each_codec = pytest.mark.parametrize("codec", range(5))


@each_codec
def test_records_are_read_as_they_were_written(codec: int) -> None:
    batch = build_batch(RECORDS, base_offset=70, codec=codec)
    assert list(read_records(batch)) == READ
    assert list(read_records(memoryview(batch + b"more"))) == READ


def test_the_header_has_the_arguments_of_build_batch() -> None:
    batch = build_batch(
        RECORDS,
        base_offset=70,
        codec=3,
        producer_id=5,
        producer_epoch=6,
        base_sequence=7,
        leader_epoch=8,
        transactional=True,
    )
    header = read_header(b"xx" + batch, 2)
    assert header._replace(crc=0, length=0) == (70, 0, 8, 2, 0, 3 | TRANSACTIONAL, 2, 1000, 1005, 5, 6, 7, 3)
    assert header.size_bytes == len(batch)
    assert header.last_offset == 72
    assert (header.codec, header.is_transactional, header.is_control, header.is_log_append_time) == (
        3,
        True,
        False,
        False,
    )
    assert crc_matches(batch, header)


def test_a_transaction_marker_has_the_bytes_of_kafka() -> None:
    abort: NewRecord = (0, bytes.fromhex("00000000"), bytes.fromhex("000000000000"), [])
    batch = build_batch([abort], producer_id=9, producer_epoch=1, control=True, transactional=True)
    assert batch[HEADER_SIZE:].hex() == "20" + "00" + "00" + "00" + "08" + "00000000" + "0c" + "000000000000" + "00"
    assert read_header(batch).attributes == CONTROL | TRANSACTIONAL


def test_a_whole_batch_has_its_known_bytes() -> None:
    batch = build_batch([(1, b"k", b"v", [])])
    expected = (
        "0000000000000000" "0000003a" "ffffffff" "02" "6f484c23" "0000" "00000000"
        "0000000000000001" "0000000000000001" "ffffffffffffffff" "ffff" "ffffffff" "00000001"
        "10" "00" "00" "00" "02" "6b" "02" "76" "00"
    )  # fmt: skip
    assert batch.hex() == expected


def test_a_batch_needs_a_record() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        build_batch([])


def test_the_time_of_appending_stands_for_the_time_of_every_record() -> None:
    batch = build_batch(RECORDS)
    header = read_header(batch)
    stamped = assemble_batch(
        header._replace(attributes=header.attributes | LOG_APPEND_TIME, max_timestamp=5000), read_body(batch, header)
    )
    assert [record.timestamp for record in read_records(stamped)] == [5000, 5000, 5000]
    assert crc_matches(stamped, read_header(stamped))


def test_a_flipped_bit_after_the_checksum_shows() -> None:
    batch = bytearray(build_batch(RECORDS))
    for position in (21, 40, HEADER_SIZE, len(batch) - 1):
        batch[position] ^= 1
        assert not crc_matches(batch, read_header(batch))
        batch[position] ^= 1
    batch[0:8] = (10**12).to_bytes(8, "big")
    assert crc_matches(batch, read_header(batch))


@each_codec
@pytest.mark.parametrize("target", range(5))
def test_recompression_keeps_the_records(codec: int, target: int) -> None:
    batch = recompress_batch(build_batch(RECORDS, base_offset=70, codec=codec, producer_id=5), target)
    header = read_header(batch)
    assert (header.codec, header.producer_id, header.size_bytes) == (target, 5, len(batch))
    assert crc_matches(batch, header)
    assert list(read_records(batch)) == READ


def test_whole_batches_are_split_and_a_cut_one_is_left_out() -> None:
    first, second = build_batch(RECORDS), build_batch(RECORDS, codec=1)
    data = first + second
    for end in range(len(data) + 1):
        whole = [part for part, length in ((first, len(first)), (second, len(data))) if end >= length]
        assert [bytes(batch) for batch in split_batches(data[:end])] == whole


@pytest.mark.parametrize("length", [48, 0, -1, -12, -(2**31)])
def test_a_length_too_small_for_a_batch_is_refused(length: int) -> None:
    data = bytes(8) + length.to_bytes(4, "big", signed=True) + bytes(100)
    with pytest.raises(MalformedError, match="its header alone has 61"):
        list(split_batches(data))


def test_a_cut_header_is_refused() -> None:
    with pytest.raises(MalformedError, match="cut off after 60"):
        read_header(build_batch(RECORDS), len(build_batch(RECORDS)) - 60)


def test_a_cut_batch_is_refused() -> None:
    batch = build_batch(RECORDS)
    for end in range(len(batch)):
        with pytest.raises(MalformedError):
            list(read_records(batch[:end]))


@pytest.mark.parametrize("count", [2, 4, -1])
def test_a_wrong_record_count_is_refused(count: int) -> None:
    batch = build_batch(RECORDS)
    wrong = assemble_batch(read_header(batch)._replace(record_count=count), batch[HEADER_SIZE:])
    with pytest.raises(MalformedError):
        list(read_records(wrong))


def _make_record(*fields: bytes) -> bytes:
    body = b"\0\0\0" + b"".join(fields)
    return encode_varint(len(body)) + body


NONE = encode_varint(-1)
DAMAGED = {
    "a record without a byte": encode_varint(0),
    "a record of negative length": encode_varint(-5),
    "a record longer than the batch": encode_varint(100) + bytes(20),
    "a key longer than the record": _make_record(encode_varint(100), NONE, encode_varint(0)),
    "a value longer than the record": _make_record(NONE, encode_varint(100), encode_varint(0)),
    "a negative number of headers": _make_record(NONE, NONE, encode_varint(-1)),
    "more headers than bytes": _make_record(NONE, NONE, encode_varint(2**31 - 1)),
    "a header without a name": _make_record(NONE, NONE, encode_varint(1), NONE, NONE),
    "fields that end before the record": _make_record(NONE, NONE, encode_varint(0), b"?"),
    "fields that end after the record": encode_varint(6) + b"\0\0\0" + encode_varint(2) + b"ab" + NONE + b"\0",
}


@pytest.mark.parametrize("body", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_record_is_refused(body: bytes) -> None:
    header = read_header(build_batch([(0, None, None, [])]))
    with pytest.raises(MalformedError):
        list(read_records(assemble_batch(header, body)))


@each_codec
def test_garbage_raises_nothing_but_malformed(codec: int) -> None:
    rng = seeded_random()
    valid = build_batch(RECORDS, codec=codec)
    for _ in range(500):
        data = bytearray(valid)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            list(read_records(data[: rng.randint(0, len(data))] if rng.random() < 0.2 else data, 100_000))
        except MalformedError:
            continue
