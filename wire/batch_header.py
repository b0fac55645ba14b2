"""The header of a record batch of format version 2, the only one that is stored and served.

A batch is a header of 61 bytes and then its records, which are compressed together. The broker sets
``base_offset`` and ``partition_leader_epoch``; for that reason the checksum covers every byte but these. (https://kafka.apache.org/documentation/#recordbatch)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kafkacompat.wire.checksum import crc32c
from kafkacompat.wire.primitives import Buffer, MalformedError

HEADER_SIZE = 61
LENGTH_END = 12
"""Position of the first byte that the length field counts."""
CRC_END = 21
"""Position of the first byte that the checksum covers."""
ATTRIBUTES_POSITION = 22
"""Position of the low byte of the attributes, which holds all bits that have a meaning."""
MAGIC_V2 = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
"""Attribute: the base timestamp is the time from which compaction may drop the batch's tombstones or marker (KIP-534)."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH = struct.Struct(">i")
_NEW = tuple.__new__


class BatchHeader(NamedTuple):
    """The header's fields in file order; -1 stands for no epoch, producer, sequence or timestamp."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The size of the whole batch, with its header."""
        return LENGTH_END + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def latest_timestamp(self) -> int:
        """The largest timestamp of its records; -1 if compaction removed all of them, whatever the header says."""
        return self.max_timestamp if self.record_count else -1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether all records have the broker's append time, ``max_timestamp``."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which compaction may drop its tombstones or marker; None until a compaction has read them."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at *position*; raises MalformedError when it is cut off. Nothing else is checked."""
    if len(data) - position < HEADER_SIZE:
        raise MalformedError(f"a batch header of {HEADER_SIZE} bytes is cut off after {len(data) - position}")
    # `_make` would count the fields again; the Struct guarantees their number.
    return _NEW(BatchHeader, _HEADER.unpack_from(data, position))


def crc_matches(batch: Buffer, header: BatchHeader) -> bool:
    """Return whether the checksum matches the bytes of *batch*."""
    return header.magic == MAGIC_V2 and crc32c(memoryview(batch)[CRC_END : header.size_bytes]) == header.crc


def split_batches(data: Buffer) -> Iterator[memoryview]:
    """Yield the whole batches of *data*, without one that is cut off at the end.

    Raises MalformedError if a length is too small for a batch.
    """
    view = memoryview(data)
    while len(view) >= LENGTH_END:
        size_bytes = LENGTH_END + _LENGTH.unpack_from(view, 8)[0]
        if size_bytes < HEADER_SIZE:
            raise MalformedError(f"a batch claims a size of {size_bytes} bytes; its header alone has {HEADER_SIZE}")
        if size_bytes > len(view):
            return
        yield view[:size_bytes]
        view = view[size_bytes:]


def assemble_batch(header: BatchHeader, body: Buffer) -> bytes:
    """Join *header* and the records as stored, with the correct length and checksum."""
    length = HEADER_SIZE - LENGTH_END + len(body)
    head = bytearray(_HEADER.pack(*header._replace(length=length, crc=0)))
    crc = crc32c(body, crc32c(head[CRC_END:]))
    head[CRC_END - 4 : CRC_END] = crc.to_bytes(4, "big")
    return b"".join((head, body))
