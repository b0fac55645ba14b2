"""The header of a record batch of format version 2, the only one that is stored and served.

A batch is a header of 61 bytes and then its records, all of them together compressed as one. The
broker sets ``base_offset`` and ``partition_leader_epoch``, which the checksum leaves out for that
very reason; every other byte is covered by it. (https://kafka.apache.org/documentation/#recordbatch)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kafkacompat.wire.checksum import crc32c
from kafkacompat.wire.primitives import Buffer, MalformedError

HEADER_SIZE = 61
LENGTH_END = 12
"""Where the bytes begin that the length field counts."""
CRC_END = 21
"""Where the bytes begin that the checksum covers."""
ATTRIBUTES_POSITION = 22
"""Where the low byte of the attributes lies, in which all of them are that have a meaning."""
MAGIC_V2 = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
"""The base timestamp is the time from which on compaction may drop the batch's tombstones or marker (KIP-534)."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH = struct.Struct(">i")
_NEW = tuple.__new__


class BatchHeader(NamedTuple):
    """The header's fields in their order; -1 stands for no epoch, producer, sequence or timestamp."""

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
        """Size of the whole batch."""
        return LENGTH_END + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def latest_timestamp(self) -> int:
        """The largest timestamp of its records; -1 where compaction took all of them, whatever the header keeps."""
        return self.max_timestamp if self.record_count else -1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether every record's time is ``max_timestamp``, at which the broker appended them."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which on compaction may drop its tombstones or marker; None before one has seen them."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at *position*; raises MalformedError when it is cut off. Nothing else is checked."""
    if len(data) - position < HEADER_SIZE:
        raise MalformedError(f"a batch header of {HEADER_SIZE} bytes is cut off after {len(data) - position}")
    # As `_make`, which counts the fields; so does the Struct.
    return _NEW(BatchHeader, _HEADER.unpack_from(data, position))


def crc_matches(batch: Buffer, header: BatchHeader) -> bool:
    """Tell whether the bytes of *batch* are those the checksum was taken of; the format's number lies in front of them."""
    return header.magic == MAGIC_V2 and crc32c(memoryview(batch)[CRC_END : header.size_bytes]) == header.crc


def batches(data: Buffer) -> Iterator[memoryview]:
    """Yield the whole batches of *data*; one that is cut off at the end is left out.

    Raises MalformedError at a length that is too small for a batch.
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


def assemble(header: BatchHeader, body: Buffer) -> bytes:
    """Join *header* and the records as they are stored, with the length and the checksum set right."""
    length = HEADER_SIZE - LENGTH_END + len(body)
    head = bytearray(_HEADER.pack(*header._replace(length=length, crc=0)))
    crc = crc32c(body, crc32c(head[CRC_END:]))
    head[CRC_END - 4 : CRC_END] = crc.to_bytes(4, "big")
    return b"".join((head, body))
