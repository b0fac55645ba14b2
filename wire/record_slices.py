"""Where each record of a stored batch lies, with its offset and key: compaction reads many records, and little of each."""

from __future__ import annotations

from collections.abc import Iterator

from kafkacompat.wire.primitives import MalformedError, encode_varint, read_varint, read_varlong
from kafkacompat.wire.record_walk import RecordSlice
from kafkacompat.wire.walk_form import slice_records

TURN_RECORDS = 64
"""Records of one turn: a compaction takes some tenths of a millisecond for them."""


def slice_in_turns(body: bytes, count: int) -> Iterator[list[RecordSlice]]:
    """Yield where the *count* records of an unpacked batch lie, at most TURN_RECORDS in a list.

    Raises MalformedError unless each record follows the one before and the last ends with *body*.
    """
    end = 0
    for first in range(0, count, TURN_RECORDS):
        slices, end = slice_records(body, end, min(TURN_RECORDS, count - first))
        yield slices
    if end != len(body):
        raise MalformedError(f"{len(body) - end} bytes follow the {count} records of a batch")


def timestamp_deltas(body: bytes, count: int) -> Iterator[int]:
    """Yield the timestamp delta of each of the *count* records of a batch that `walk` accepted."""
    position = 0
    for _ in range(count):
        length, position = read_varint(body, position)
        yield read_varlong(body, position + 1)[0]
        position += length


def timestamp_delta(body: bytes, start: int) -> int:
    """Return the timestamp delta of the record at *start*."""
    return read_varlong(body, read_varint(body, start)[1] + 1)[0]


def moved_record(body: bytes, start: int, end: int, shift_ms: int) -> bytes:
    """Return the record between *start* and *end* with a timestamp delta that is *shift_ms* larger."""
    attributes = read_varint(body, start)[1]
    delta, rest = read_varlong(body, attributes + 1)
    content = b"".join((body[attributes : attributes + 1], encode_varint(delta + shift_ms), body[rest:end]))
    return encode_varint(len(content)) + content
