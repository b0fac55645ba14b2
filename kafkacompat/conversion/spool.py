"""Nameless files for converted batches: one file holds many small pieces, so that they do not need a descriptor each."""

from __future__ import annotations

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.shared_files import FileRegion, SegmentFile
from kafkacompat.wire.primitives import Buffer

FILE_BYTES = 1024 * 1024
"""A file of this size gets no more pieces: the whole file stays on the disk while any piece of it is in use."""


class Spool:
    """Writes pieces one after the other, on the disk of a *directory*."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._file: SegmentFile | None = None
        self._size_bytes = 0

    def put(self, data: Buffer) -> FileRegion:
        """Write a piece; the caller releases the region. Raises OSError."""
        if self._file is None or self._size_bytes >= FILE_BYTES:
            self.close()
            self._file, self._size_bytes = SegmentFile(self._files.create_temporary(self._directory)), 0
        try:
            self._file.file.append((data,), len(data))
        except OSError:
            # An unknown part of the piece may have been written.
            self.close()
            raise
        self._file.acquire()
        self._size_bytes += len(data)
        return FileRegion(self._file, self._size_bytes - len(data), len(data))

    def close(self) -> None:
        """End writing; the system removes a file when its last piece is released."""
        file, self._file = self._file, None
        if file is not None:
            file.release()
