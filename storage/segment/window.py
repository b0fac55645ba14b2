"""Reading a whole file in large pieces."""

from __future__ import annotations

from collections.abc import Callable

from kafkacompat.storage.files.filesystem import File
from kafkacompat.wire.checksum import crc32c
from kafkacompat.wire.primitives import Buffer

CHUNK_BYTES = 1 << 20


class Window:
    """The piece of a file that was read last."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._data = memoryview(b"")
        self._start = 0

    def read(self, position: int, size_bytes: int) -> memoryview:
        """Return bytes of the file, at most CHUNK_BYTES; fewer at its end."""
        offset = position - self._start
        if offset < 0 or offset + size_bytes > len(self._data):
            self._data, self._start, offset = memoryview(self._file.pread(CHUNK_BYTES, position)), position, 0
        return self._data[offset : offset + size_bytes]

    def checksum(self, position: int, end: int, function: Callable[[Buffer, int], int] = crc32c) -> int:
        """Return the checksum of a range, read in pieces: a garbage length must not allocate memory."""
        value = 0
        for start in range(position, end, CHUNK_BYTES):
            value = function(self.read(start, min(CHUNK_BYTES, end - start)), value)
        return value
