"""Damage to fetched records, and to the frames of responses."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kafkacompat.server.outgoing import release_regions
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.wire.batch_header import HEADER_SIZE, MAGIC_V2
from kafkacompat.wire.compiler import find_writer
from kafkacompat.wire.connection import EncodedResponse, IncomingRequest
from kafkacompat.wire.headers import response_header_version
from kafkacompat.wire.schema import Response

_SIZE = struct.Struct(">i")
_LENGTH_POSITION, _LENGTH_END = 8, 12
_MAGIC_POSITION = 16
_CRC_POSITION = 17
_OLD_CRC_POSITION = 12
"""Where the checksum is in a batch, and in a message of formats 0 and 1."""
_LEAST_BYTES = _MAGIC_POSITION + 1


def corrupt_crc(records: bytes) -> bytes:
    """Return fetched records with a wrong checksum in the first batch or message."""
    if len(records) < HEADER_SIZE and (len(records) < _LEAST_BYTES or records[_MAGIC_POSITION] >= MAGIC_V2):
        return records
    position = _CRC_POSITION if records[_MAGIC_POSITION] >= MAGIC_V2 else _OLD_CRC_POSITION
    damaged = bytearray(records)
    damaged[position] ^= 0xFF
    return bytes(damaged)


def truncate_batch(records: bytes) -> bytes:
    """Return fetched records without the second half of the last batch or message."""
    start = position = 0
    while position + _LENGTH_END <= len(records):
        start = position
        position += _LENGTH_END + _SIZE.unpack_from(records, position + _LENGTH_POSITION)[0]
    end = min(position, len(records))
    return records[: start + max((end - start) // 2, 1)]


RECORD_DAMAGE: dict[str, Callable[[bytes], bytes]] = {"corrupt_crc": corrupt_crc, "truncate_batch": truncate_batch}


def read_records(records: Any) -> bytes:
    """Return the bytes of fetched records, which may be a file region; the region is released."""
    if not isinstance(records, FileRegion):
        return bytes(records or b"")
    try:
        return records.pread(0, records.size_bytes)
    finally:
        records.release()


def encode_frame(incoming: IncomingRequest, response: Response) -> bytes:
    """Return the frame of a response, with its size; records are read from their files, and released."""
    if isinstance(response, EncodedResponse):
        return _SIZE.pack(len(response.data)) + response.data
    version = incoming.api_version if incoming.body is not None else 0
    try:
        header = _SIZE.pack(incoming.correlation_id) + b"\0" * response_header_version(type(response), version)
        body = b"".join(
            part.pread(0, part.size_bytes) if isinstance(part, FileRegion) else bytes(part)  # type: ignore[arg-type]
            for part in find_writer(type(response), version)(response)
        )
    finally:
        release_regions(response)
    return _SIZE.pack(len(header) + len(body)) + header + body
