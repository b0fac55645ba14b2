"""Variable-length integers at the places where their length changes."""

from __future__ import annotations

from random import Random

import pytest

from kafkacompat.wire.primitives import (
    MalformedError,
    encode_uvarint,
    encode_varint,
    format_uuid,
    new_uuid,
    parse_uuid,
    read_short_varint,
    read_uvarint,
    read_varint,
    read_varlong,
)

UNSIGNED = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**32 - 1, "ffffffff0f"),
]
ZIG_ZAG = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (2**31 - 1, "feffffff0f"),
]
LONGS = [
    (2**31, "8080808010"),
    (-(2**31) - 1, "8180808010"),
    (2**63 - 1, "feffffffffffffffff01"),
    (-(2**63), "ffffffffffffffffff01"),
]


@pytest.mark.parametrize(("value", "encoded"), UNSIGNED)
def test_unsigned_varints_have_their_known_bytes(value: int, encoded: str) -> None:
    assert encode_uvarint(value).hex() == encoded
    assert read_uvarint(bytes.fromhex("aa" + encoded + "aa"), 1) == (value, 1 + len(encoded) // 2)


@pytest.mark.parametrize(("value", "encoded"), ZIG_ZAG + LONGS)
def test_zig_zag_varints_have_their_known_bytes(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    data, end = bytes.fromhex("aa" + encoded + "aa"), 1 + len(encoded) // 2
    assert read_varlong(data, 1) == read_short_varint(data, 1, read_varlong) == (value, end)
    if (value, encoded) in ZIG_ZAG:
        assert read_varint(data, 1) == read_short_varint(data, 1) == (value, end)


@pytest.mark.parametrize("read", [read_uvarint, read_varint, read_varlong])
@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff"])
def test_a_cut_varint_is_refused(read: object, data: bytes) -> None:
    assert callable(read)
    with pytest.raises(MalformedError, match="cut off"):
        read(data, 0)


@pytest.mark.parametrize("data", [b"\x80\x80\x80\x80\x80\x00", b"\xff\xff\xff\xff\x10"])
def test_an_unsigned_varint_over_32_bits_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedError, match="32 bits"):
        read_uvarint(data, 0)


def test_a_varint_of_more_than_five_bytes_is_refused() -> None:
    assert read_varint(b"\x80" * 4 + b"\x00", 0) == (0, 5)
    with pytest.raises(MalformedError, match="more than 5 bytes"):
        read_varint(b"\x80" * 5 + b"\x00", 0)


def test_a_varlong_of_more_than_ten_bytes_is_refused() -> None:
    assert read_varlong(b"\x80" * 9 + b"\x00", 0) == (0, 10)
    with pytest.raises(MalformedError, match="more than 10 bytes"):
        read_varlong(b"\x80" * 10 + b"\x00", 0)


def test_bits_that_do_not_fit_the_number_are_dropped() -> None:
    assert read_varint(b"\x82\x80\x80\x80\x70", 0) == (1, 5)
    assert read_varlong(b"\x82" + b"\x80" * 8 + b"\x7e", 0) == (1, 10)


def test_uuids_are_spelled_for_addresses() -> None:
    uuid = bytes.fromhex("fbff" * 8)
    assert format_uuid(uuid) == "-__7__v_-__7__v_-__7_w"
    assert parse_uuid(format_uuid(uuid)) == uuid


@pytest.mark.parametrize("text", ["", "AAAA", "-__7__v_-__7__v_-__7_wAA", "\xff" * 22])
def test_a_bad_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_uuid(text)


def test_new_ids_are_random_uuids_that_no_command_line_takes_for_an_option() -> None:
    rng = Random(3)
    ids = [new_uuid(rng) for _ in range(2000)]
    assert len(set(ids)) == 2000
    assert {uuid[6] >> 4 for uuid in ids} == {4} and {uuid[8] >> 6 for uuid in ids} == {2}
    assert all(uuid[0] >> 2 != 62 for uuid in ids)


def test_an_id_that_is_taken_is_not_given_again() -> None:
    first = new_uuid(Random(3))
    assert new_uuid(Random(3), {first}) != first
