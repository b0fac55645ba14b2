"""Rows that tests produce, in the forms that are shortest to write; and the records that they read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from kafkacompat.testing.arguments import is_number
from kafkacompat.testing.errors import BrokerError

Text: TypeAlias = "str | bytes | None"
Row: TypeAlias = "Text | tuple[Text, Text] | Mapping[str, Any]"
"""A value, a tuple of key and value, or a dictionary with some of `FIELDS`. Texts are encoded in UTF-8; None is Kafka's null."""

FIELDS = ("key", "value", "headers", "partition", "timestamp")
NO_PARTITION = -1


class Record(NamedTuple):
    """A record of a topic; the timestamp is in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class NewRow(NamedTuple):
    """A row to produce; the partition is NO_PARTITION and the timestamp None where the row has none."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int
    timestamp_ms: int | None


def read_row(row: Row) -> NewRow:
    """Return a row in its full form; raises BrokerError, one sentence."""
    if isinstance(row, Mapping):
        return _read_mapping(row)
    if isinstance(row, tuple):
        if len(row) != 2:
            raise BrokerError(f"a row has {len(row)} items, {row!r}: write (key, value)")
        return NewRow(encode_text(row[0]), encode_text(row[1]), [], NO_PARTITION, None)
    return NewRow(None, encode_text(row), [], NO_PARTITION, None)


def _read_mapping(row: Mapping[str, Any]) -> NewRow:
    unknown = [name for name in row if name not in FIELDS]
    if unknown:
        raise BrokerError(f"a row has {unknown[0]!r}, but a dictionary has {', '.join(FIELDS)}: write JSON as a text")
    partition = row.get("partition", NO_PARTITION)
    if not is_number(partition):
        raise BrokerError(f"a partition is {partition!r}: give its number")
    return NewRow(
        encode_text(row.get("key")),
        encode_text(row.get("value")),
        _read_headers(row.get("headers") or ()),
        partition,
        _read_timestamp(row.get("timestamp")),
    )


def _read_headers(headers: Any) -> list[tuple[str, bytes | None]]:
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise BrokerError(f"headers are {headers!r}: give a dictionary, or a list of (name, value)")
    return [(name, encode_text(value)) for name, value in pairs]


def _read_timestamp(value: object) -> int | None:
    if isinstance(value, datetime):
        return int(value.timestamp() * 1000)
    if value is None or isinstance(value, int):
        return value
    raise BrokerError(f"a timestamp is {value!r}: give milliseconds since 1970 or a datetime")


def encode_text(text: object) -> bytes | None:
    """Return a key or a value as bytes; raises BrokerError."""
    if isinstance(text, str):
        return text.encode()
    if text is None or isinstance(text, bytes):
        return text
    if isinstance(text, bytearray | memoryview):
        return bytes(text)
    raise BrokerError(f"a key or a value is {text!r}, of type {type(text).__name__}: give a text, bytes or None")


class Partitioner:
    """Chooses partitions as Kafka's clients in Java do for keys; rows without a key go to the partitions in turn."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._next = 0

    def choose(self, row: NewRow) -> int:
        """Return the partition of a row."""
        if row.partition != NO_PARTITION:
            return row.partition
        if row.key is not None:
            return (hash_key(row.key) & 0x7FFFFFFF) % self._partitions
        self._next += 1
        return (self._next - 1) % self._partitions


def hash_key(key: bytes) -> int:
    """Return the murmur2 hash of a key with Kafka's seed, as a number without sign."""
    length, factor, mask = len(key), 0x5BD1E995, 0xFFFFFFFF
    value = 0x9747B28C ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        part = int.from_bytes(key[position : position + 4], "little") * factor & mask
        part = (part ^ part >> 24) * factor & mask
        value = (value * factor & mask) ^ part
    if whole < length:
        value = ((value ^ int.from_bytes(key[whole:], "little")) * factor) & mask
    value = (value ^ value >> 13) * factor & mask
    return value ^ value >> 15


def split_rows(rows: Iterable[Row], most_rows: int, most_bytes: int) -> Iterator[list[NewRow]]:
    """Yield the rows in pieces of at least one row, and at most *most_rows* and about *most_bytes*."""
    piece, size_bytes = list[NewRow](), 0
    for row in rows:
        new = read_row(row)
        row_bytes = len(new.key or b"") + len(new.value or b"") + sum(len(value or b"") for _, value in new.headers)
        if piece and (len(piece) == most_rows or size_bytes + row_bytes > most_bytes):
            yield piece
            piece, size_bytes = [], 0
        piece.append(new)
        size_bytes += row_bytes
    if piece:
        yield piece
