"""Producer snapshot files: the producer state of a partition at an offset.

Format: docs/format/producer-snapshot.md. A roll and a clean close write one, so that opening a log reads only the
batches after the latest one. Everything here is a disk operation.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from struct import Struct

from kafkacompat.storage.files.checkpoints import overwrite_file
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.producers.producer import PRODUCER_ENTRY, Producer
from kafkacompat.wire.checksum import crc32c

SNAPSHOT_SUFFIX = ".snapshot"
VERSION = 1

_VERSION_AND_CRC = Struct(">hI")
_COUNT = Struct(">i")
_PIECE = 8192


class CorruptSnapshotError(Exception):
    """A snapshot cannot be read; the previous one is used instead."""


def encode_snapshot(entries: Sequence[bytes]) -> Iterator[bytes]:
    """Encode a file's contents in short pieces; as in Kafka, it has the last batch of each producer alone."""
    pieces = [_COUNT.pack(len(entries))]
    pieces += [b"".join(entries[start : start + _PIECE]) for start in range(0, len(entries), _PIECE)]
    crc = 0
    for piece in pieces:
        crc = crc32c(piece, crc)
    yield _VERSION_AND_CRC.pack(VERSION, crc)
    yield from pieces


def decode_snapshot(data: bytes) -> list[Producer]:
    """Decode a file's contents. Raises CorruptSnapshotError."""
    try:
        version, crc = _VERSION_AND_CRC.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _VERSION_AND_CRC.size)
    except struct.error as error:
        raise CorruptSnapshotError("the snapshot is cut off") from error
    entries = memoryview(data)[_VERSION_AND_CRC.size + _COUNT.size :]
    if (
        version != VERSION
        or crc != crc32c(data[_VERSION_AND_CRC.size :])
        or len(entries) != count * PRODUCER_ENTRY.size
    ):
        raise CorruptSnapshotError(f"the snapshot has version {version}, a wrong CRC or a wrong length")
    return [
        Producer.from_entry(entries[start : start + PRODUCER_ENTRY.size])
        for start in range(0, len(entries), PRODUCER_ENTRY.size)
    ]


class Snapshots:
    """The snapshot files of one partition's folder."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def path(self, offset: int) -> str:
        """Return the path of the snapshot at `offset`."""
        return os.path.join(self._directory, f"{offset:020d}{SNAPSHOT_SUFFIX}")

    def offsets(self) -> list[int]:
        """Return the offsets of all snapshots, ascending."""
        names = self._files.list(self._directory)
        stems = (name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def write(self, offset: int, entries: Sequence[bytes]) -> None:
        """Write a snapshot of packed producers at `offset`, replacing an existing one."""
        overwrite_file(self._files, self.path(offset), *encode_snapshot(entries))

    def read(self, offset: int) -> list[Producer]:
        """Read the snapshot at `offset`. Raises CorruptSnapshotError."""
        return decode_snapshot(self._files.read(self.path(offset)))

    def remove(self, *offsets: int) -> None:
        """Remove snapshots and sync the folder; an absent one is no error.

        A snapshot that came back after a power failure might fit the log's length, but not its contents.
        """
        paths = [path for path in map(self.path, offsets) if self._files.exists(path)]
        for path in paths:
            self._files.remove(path)
        if paths:
            self._files.sync_directory(self._directory)
