"""Writes, reads and recompresses the records inside a batch.

Records store offsets and timestamps as differences to the header's. All numbers are zig-zag varints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from kafkacompat.wire.batch_header import (
    CODEC_MASK,
    CONTROL,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC_V2,
    TRANSACTIONAL,
    BatchHeader,
    assemble_batch,
    read_header,
)
from kafkacompat.wire.compression import DEFAULT_MAX_BYTES, compress, decompress
from kafkacompat.wire.primitives import Buffer, MalformedError, encode_varint, read_varint, read_varlong

Headers: TypeAlias = "Sequence[tuple[str, bytes | None]]"
NewRecord: TypeAlias = "tuple[int, bytes | None, bytes | None, Headers]"
"""Timestamp (ms), key, value, headers."""


class Record(NamedTuple):
    """One record; the timestamp is in ms since 1970."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    codec: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    leader_epoch: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """Build a batch of one or more records, with consecutive offsets from *base_offset* on."""
    taken = list(records)
    if not taken:
        raise ValueError("a batch needs at least one record")
    base_timestamp = taken[0][0]
    body = b"".join(encode_record(delta, base_timestamp, record) for delta, record in enumerate(taken))
    attributes = codec | (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        partition_leader_epoch=leader_epoch,
        magic=MAGIC_V2,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(taken) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(record[0] for record in taken),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(taken),
    )
    return assemble_batch(header, compress(codec, body))


def recompress_batch(batch: Buffer, codec: int, level: int | None = None, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """Return the same batch compressed with another codec (0: none).

    Raises MalformedError if the records are damaged, or larger than *max_bytes* when uncompressed.
    """
    header = read_header(batch)
    body = read_body(batch, header, max_bytes)
    return assemble_batch(
        header._replace(attributes=header.attributes & ~CODEC_MASK | codec), compress(codec, body, level)
    )


def read_body(batch: Buffer, header: BatchHeader, max_bytes: int = DEFAULT_MAX_BYTES) -> Buffer:
    """Return the uncompressed bytes of the records.

    Raises MalformedError if they are cut off, damaged, or larger than *max_bytes* when uncompressed.
    """
    end, codec = header.length + LENGTH_END, header.attributes & CODEC_MASK
    if end > len(batch):
        raise MalformedError(f"a batch of {end} bytes is cut off after {len(batch)}")
    body = memoryview(batch)[HEADER_SIZE:end]
    return decompress(codec, body, max_bytes) if codec else body


def read_records(batch: Buffer, max_bytes: int = DEFAULT_MAX_BYTES) -> Iterator[Record]:
    """Yield the records of one batch, whatever its codec.

    Raises MalformedError if they do not match the header, or are larger than *max_bytes* when uncompressed.
    """
    header = read_header(batch)
    data = bytes(read_body(batch, header, max_bytes))
    position = 0
    for _ in range(header.record_count):
        record, position = _read_record(data, position, header)
        yield record
    if position != len(data):
        raise MalformedError(f"{len(data) - position} bytes follow the {header.record_count} records of a batch")


def encode_record(offset_delta: int, base_timestamp: int, record: NewRecord) -> bytes:
    """Encode one record of a batch whose base timestamp is *base_timestamp* (ms)."""
    timestamp, key, value, headers = record
    parts = [
        b"\0",
        encode_varint(timestamp - base_timestamp),
        encode_varint(offset_delta),
        _encode_sized(key),
        _encode_sized(value),
    ]
    parts.append(encode_varint(len(headers)))
    for name, content in headers:
        parts += (_encode_sized(name.encode()), _encode_sized(content))
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _encode_sized(content: bytes | None) -> bytes:
    return encode_varint(-1) if content is None else encode_varint(len(content)) + content


def _read_record(data: bytes, position: int, header: BatchHeader) -> tuple[Record, int]:
    length, position = read_varint(data, position)
    end = position + length
    if length < 1 or end > len(data):
        raise MalformedError(f"a record claims a length of {length}, but {len(data) - position} bytes are left")
    timestamp_delta, position = read_varlong(data, position + 1)
    offset_delta, position = read_varint(data, position)
    key, position = _read_sized(data, position)
    value, position = _read_sized(data, position)
    headers, position = _read_headers(data, position, end)
    if position != end:
        raise MalformedError(f"a record's fields end {position - end} bytes off its length")
    timestamp = header.max_timestamp if header.is_log_append_time else header.base_timestamp + timestamp_delta
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), end


def _read_headers(data: bytes, position: int, end: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= end - position:
        raise MalformedError(f"a record claims {count} headers")
    headers = []
    for _ in range(count):
        name, position = _read_sized(data, position)
        content, position = _read_sized(data, position)
        headers.append((_decode_name(name), content))
    return headers, position


def _decode_name(name: bytes | None) -> str:
    if name is None:
        raise MalformedError("a record header has no name")
    return name.decode("utf-8", "replace")


def _read_sized(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    if length > len(data) - position:
        raise MalformedError(f"a record's field claims {length} bytes, but {len(data) - position} are left")
    return data[position : position + length], position + length
