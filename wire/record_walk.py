"""The walks over the records of a batch: one refuses what Apache Kafka's readers refuse, one finds each record and its key.

A record is a length, a byte of attributes, the differences of its timestamp and offset to the batch's, a key, a value and
headers. All numbers are zig-zag varints (https://kafka.apache.org/documentation/#record). As in Kafka 4.3.1 a varint has at
most 5 bytes and a varlong at most 10, bits beyond 32 or 64 are dropped, and any negative length of a key or value is null.

This module has two forms, see `walk_form`. setup.py compiles it with Cython, which takes the C types from record_walk.pxd.
Without a compiler it runs as it is. So it uses nothing but plain Python, and integers that fit 64 bits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from kafkacompat.wire.primitives import MIN_INT64, MalformedError, encode_varint

RecordSlice: TypeAlias = "tuple[int, int, int, bytes | None, bool]"
"""Position, end, offset delta, key, whether the record has a value."""

MAX_RECORD_ERRORS = 1000
"""The most records that a refusal names; a batch may hold millions."""

_COMPILED = not __file__.endswith(".py")

# The plain form checks 64 records of one layout at once: the bytes at one place of each are one slice of the batch.
# Zig-zag doubles the offsets, so those of 64 records in a row differ in their first byte only.
_BLOCK = 64
_SMALLEST_BLOCK = 16
"""Checking fewer records one by one is as fast."""
_ODD = bytes(range(1, 0x100, 2))


def walk(data: bytes, count: int, keys_required: bool) -> tuple[int, list[int]]:
    """Check the *count* records that *data* consists of, whose offsets must count up from 0.

    Returns the largest timestamp delta (ms; 0 without records), and with *keys_required* the indexes of the records
    without a key, at most MAX_RECORD_ERRORS of them. Raises MalformedError for records that a consumer cannot read.
    """
    position, index, newest = 0, 0, MIN_INT64 if count > 0 else 0
    without_key: list[int] = []
    while not _COMPILED and index < count:
        block_end = min(count, index + _BLOCK)
        block = _walk_block(data, position, index, block_end, keys_required)
        if block is None:
            break  # records of one layout rarely follow others
        position, newest, index = block[0], max(newest, block[1]), block_end
    position, newest = _walk_records(data, position, index, count, newest, keys_required, without_key)
    if position != len(data):
        raise MalformedError(f"{count} records end at byte {position} of a batch whose records take {len(data)}")
    return newest, without_key


def _walk_records(
    data: bytes, position: int, index: int, count: int, newest: int, keys_required: bool, without_key: list[int]
) -> tuple[int, int]:
    """Check the records from number *index*, at *position*, one by one.

    Returns where the last one ends and the largest timestamp delta; adds to *without_key*. Numbers of one byte are read in
    place, because a call for each would double the time of the plain form.
    """
    end = len(data)
    try:
        while index < count:
            byte = data[position]
            if byte < 0x80:
                size, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                size, position = _read_varint(data, position)
            record_end = position + size
            if size < 0 or record_end > end:
                raise MalformedError(f"record {index} claims the length {size} with {end - position} bytes left")

            byte = data[position + 1]  # after the attributes
            if byte < 0x80:
                delta, position = (byte >> 1) ^ -(byte & 1), position + 2
            else:
                delta, position = _read_varlong(data, position + 1)
            if delta > newest:
                newest = delta

            byte = data[position]
            if byte < 0x80:
                offset_delta, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                offset_delta, position = _read_varint(data, position)
            if offset_delta != index:
                raise MalformedError(f"record {index} has the offset delta {offset_delta}")

            byte = data[position]
            if byte < 0x80:
                size, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                size, position = _read_varint(data, position)
            if size > 0:
                position += size
            elif size < 0 and keys_required and len(without_key) < MAX_RECORD_ERRORS:
                without_key.append(index)

            byte = data[position]
            if byte < 0x80:
                size, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                size, position = _read_varint(data, position)
            if size > 0:
                position += size

            if data[position]:
                position = _walk_headers(data, position, record_end, index)
            else:
                position += 1
            if position != record_end:
                raise MalformedError(f"the fields of record {index} end {position - record_end} bytes off its length")
            index += 1
    except IndexError:
        raise MalformedError(f"record {index} is cut off at byte {end}") from None
    return position, newest


def slice_records(data: bytes, position: int, count: int) -> tuple[list[RecordSlice], int]:
    """Return where each of the *count* records from *position* on lies, and where the last one ends.

    It reads the fields up to the value's length, for a batch that was checked when it came in. Raises MalformedError for
    a record that is cut off or shorter than those fields.
    """
    slices: list[RecordSlice] = []
    data_end = len(data)
    try:
        while count > 0:
            start = position
            byte = data[position]
            if byte < 0x80:
                size, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                size, position = _read_varint(data, position)
            record_end = position + size
            position += 1  # the attributes
            while data[position] >= 0x80:  # the timestamp delta
                position += 1
            position += 1

            byte = data[position]
            if byte < 0x80:
                offset_delta, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                offset_delta, position = _read_varint(data, position)

            byte = data[position]
            if byte < 0x80:
                size, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                size, position = _read_varint(data, position)
            key = None
            if size >= 0:
                key = data[position : position + size]
                position += size
            has_value = not data[position] & 1  # a negative length is odd in zig-zag
            if position >= record_end or record_end > data_end:
                raise MalformedError(
                    f"a record's fields lead to byte {position}, its length to {record_end} of {data_end}"
                )
            slices.append((start, record_end, offset_delta, key, has_value))
            position = record_end
            count -= 1
    except IndexError:
        raise MalformedError(f"a record is cut off at byte {data_end}") from None
    return slices, position


def _walk_headers(data: bytes, position: int, record_end: int, index: int) -> int:
    """Check the headers, whose count is at *position*; return where they end. Raises IndexError if they are cut off."""
    count, position = _read_varint(data, position)
    if count < 0 or count > record_end - position:
        raise MalformedError(f"record {index} claims {count} headers with {record_end - position} bytes left")
    while count and position <= record_end:
        byte = data[position]
        if byte < 0x80:
            size, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            size, position = _read_varint(data, position)
        if size < 0:
            raise MalformedError(f"record {index} has a header without a name")
        position += size
        byte = data[position]
        if byte < 0x80:
            size, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            size, position = _read_varint(data, position)
        if size > 0:
            position += size
        count -= 1
    return position


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return (32-bit number, next position); for one that is cut off or too long a position beyond the data.

    The next look at that position raises IndexError, or the comparison with the record's end fails. Compiled functions
    that raise nothing return faster.
    """
    value, shift, end = 0, 0, len(data)
    while shift < 35 and position < end:
        byte = data[position]
        position += 1
        value |= (byte & (0x0F if shift == 28 else 0x7F)) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    return 0, end + 1


def _read_varlong(data: bytes, position: int) -> tuple[int, int]:
    """As `_read_varint`, for a 64-bit number."""
    value, shift, end = 0, 0, len(data)
    while shift < 70 and position < end:
        byte = data[position]
        position += 1
        value |= (byte & (0x01 if shift == 63 else 0x7F)) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    return 0, end + 1


def _walk_block(data: bytes, position: int, index: int, block_end: int, keys_required: bool) -> tuple[int, int] | None:
    """Check all records from *index* to *block_end* at once; return where they end and the largest timestamp delta.

    Returns None unless all have the layout of the first: lengths of the same bytes, timestamps of one byte, no headers.
    """
    count = block_end - index
    if count < _SMALLEST_BLOCK:
        return None
    size, time_at = _read_varint(data, position)
    record_size = time_at + size - position
    span = record_size * count
    if size < 0 or position + span > len(data):
        return None
    time_at += 1  # after the attributes
    offset_bytes = _offset_bytes(index)
    key_at = time_at + 1 + len(offset_bytes)
    size, key_end = _read_varint(data, key_at)
    if size < 0 and keys_required:
        return None
    value_at = key_end + max(size, 0)
    size, value_end = _read_varint(data, value_at)
    header_count_at = value_end + max(size, 0)
    if header_count_at + 1 != position + record_size or data[header_count_at]:
        return None
    for at in (*range(position, time_at - 1), *range(key_at, key_end), *range(value_at, value_end), header_count_at):
        if data[at : at + span : record_size].count(data[at]) != count:
            return None
    for at, expected in enumerate(offset_bytes, time_at + 1):
        if data[at : at + span : record_size] != expected[:count]:
            return None
    times = data[time_at : time_at + span : record_size]
    if not times.isascii():
        return None
    evens = times.translate(None, _ODD)  # zig-zag makes negative numbers odd
    return position + span, max(evens) >> 1 if evens else -(min(times) + 1 >> 1)


@lru_cache(1024)
def _offset_bytes(index: int) -> tuple[bytes, ...]:
    """The first bytes of a block's offset deltas, the second ones, and so on; all of them have as many."""
    return tuple(map(bytes, zip(*map(encode_varint, range(index, index + _BLOCK)), strict=True)))
