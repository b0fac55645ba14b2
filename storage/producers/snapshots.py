"""Producer snapshot files: what a partition knew of its producers at an offset.

Format: docs/format/producer-snapshot.md. One is written for each new segment and at a clean close, so that
opening a log reads only the batches behind the latest one. Everything here is a disk operation.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from struct import Struct

from kafkacompat.storage.files.checkpoints import overwrite_file
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.producers.producer import ENTRY, Producer
from kafkacompat.wire.checksum import crc32c

SNAPSHOT_SUFFIX = ".snapshot"
VERSION = 1

_VERSION_AND_CRC = Struct(">hI")
_COUNT = Struct(">i")
_PIECE = 8192


class CorruptSnapshotError(Exception):
    """A snapshot that cannot be used; the one before it has to do."""


def encode(entries: Sequence[bytes]) -> Iterator[bytes]:
    """The file's contents, in pieces, none of which takes long; of each producer only its last batch is kept, as in Kafka."""
    pieces = [_COUNT.pack(len(entries))]
    pieces += [b"".join(entries[start : start + _PIECE]) for start in range(0, len(entries), _PIECE)]
    crc = 0
    for piece in pieces:
        crc = crc32c(piece, crc)
    yield _VERSION_AND_CRC.pack(VERSION, crc)
    yield from pieces


def decode(data: bytes) -> list[Producer]:
    """Read a file's contents; raises CorruptSnapshotError."""
    try:
        version, crc = _VERSION_AND_CRC.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _VERSION_AND_CRC.size)
    except struct.error as error:
        raise CorruptSnapshotError("the snapshot is cut off") from error
    entries = memoryview(data)[_VERSION_AND_CRC.size + _COUNT.size :]
    if version != VERSION or crc != crc32c(data[_VERSION_AND_CRC.size :]) or len(entries) != count * ENTRY.size:
        raise CorruptSnapshotError(f"the snapshot has version {version}, a wrong CRC or a wrong length")
    return [Producer.of_entry(entries[start : start + ENTRY.size]) for start in range(0, len(entries), ENTRY.size)]


class Snapshots:
    """The snapshot files of one partition's folder."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def path(self, offset: int) -> str:
        """Name of the one that goes up to `offset`."""
        return os.path.join(self._directory, f"{offset:020d}{SNAPSHOT_SUFFIX}")

    def offsets(self) -> list[int]:
        """Up to which offset each snapshot goes, ascending."""
        names = self._files.list(self._directory)
        stems = (name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def write(self, offset: int, entries: Sequence[bytes]) -> None:
        """Write a snapshot of these producers that goes up to `offset`, replacing one that is there."""
        overwrite_file(self._files, self.path(offset), *encode(entries))

    def read(self, offset: int) -> list[Producer]:
        """Read one; raises CorruptSnapshotError."""
        return decode(self._files.read(self.path(offset)))

    def remove(self, *offsets: int) -> None:
        """Remove some; no error when one is not there.

        They are gone for good when this returns: one that came back after a power failure might by then fit the
        log's length, but no longer its contents.
        """
        paths = [path for path in map(self.path, offsets) if self._files.exists(path)]
        for path in paths:
            self._files.remove(path)
        if paths:
            self._files.sync_directory(self._directory)
