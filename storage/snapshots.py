"""Producer snapshot files: what a partition knew of its producers at an offset.

Format: docs/format/producer-snapshot.md. One is written for each new segment and at a clean close, so that
opening a log reads only the batches behind the latest one. Everything here is a disk operation.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from struct import Struct

from kafkacompat.storage.checkpoints import overwrite_file
from kafkacompat.storage.filesystem import Files
from kafkacompat.storage.producer_state import Producer, StoredBatch
from kafkacompat.wire.checksum import crc32c

SNAPSHOT_SUFFIX = ".snapshot"
VERSION = 1

_VERSION_AND_CRC = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


class CorruptSnapshotError(Exception):
    """A snapshot that cannot be used; the one before it has to do."""


def encode(producers: Iterable[Producer]) -> bytes:
    """The file's contents; of each producer only its last batch is kept, as in Kafka."""
    entries = [_entry(producer) for producer in producers]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _VERSION_AND_CRC.pack(VERSION, crc32c(body)) + body


def _entry(producer: Producer) -> bytes:
    last = producer.batches[-1] if producer.batches else StoredBatch(-1, -1, 0, -1)
    return _ENTRY.pack(
        producer.producer_id,
        producer.producer_epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.current_txn_first_offset,
    )


def decode(data: bytes) -> list[Producer]:
    """Read a file's contents; raises CorruptSnapshotError."""
    try:
        version, crc = _VERSION_AND_CRC.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _VERSION_AND_CRC.size)
    except struct.error as error:
        raise CorruptSnapshotError("the snapshot is cut off") from error
    entries = memoryview(data)[_VERSION_AND_CRC.size + _COUNT.size :]
    if version != VERSION or crc != crc32c(data[_VERSION_AND_CRC.size :]) or len(entries) != count * _ENTRY.size:
        raise CorruptSnapshotError(f"the snapshot has version {version}, a wrong CRC or a wrong length")
    return [_producer(*fields) for fields in _ENTRY.iter_unpack(entries)]


def _producer(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    current_txn_first_offset: int,
) -> Producer:
    producer = Producer(producer_id)
    producer.producer_epoch = epoch
    producer.last_timestamp = timestamp
    producer.coordinator_epoch = coordinator_epoch
    producer.current_txn_first_offset = current_txn_first_offset
    if last_offset >= 0:
        producer.batches.append(StoredBatch(last_sequence, last_offset, offset_delta, timestamp))
    return producer


class Snapshots:
    """The snapshot files of one partition's folder."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def _path(self, offset: int) -> str:
        return os.path.join(self._directory, f"{offset:020d}{SNAPSHOT_SUFFIX}")

    def offsets(self) -> list[int]:
        """Up to which offset each snapshot goes, ascending."""
        names = self._files.list(self._directory)
        stems = (name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def write(self, offset: int, producers: Iterable[Producer]) -> None:
        """Write a snapshot that goes up to `offset`, replacing one that is there."""
        overwrite_file(self._files, self._path(offset), encode(producers))

    def read(self, offset: int) -> list[Producer]:
        """Read one; raises CorruptSnapshotError."""
        return decode(self._files.read(self._path(offset)))

    def remove(self, *offsets: int) -> None:
        """Remove some; no error when one is not there.

        They are gone for good when this returns: one that came back after a power failure might by then fit the
        log's length, but no longer its contents.
        """
        paths = [path for path in map(self._path, offsets) if self._files.exists(path)]
        for path in paths:
            self._files.remove(path)
        if paths:
            self._files.sync_directory(self._directory)
