"""Nameless files for what was converted: many small pieces in one, so that they do not take a descriptor each."""

from __future__ import annotations

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.segment_file import FileRegion, SegmentFile
from kafkacompat.wire.primitives import Buffer

FILE_BYTES = 1024 * 1024
"""Behind so much a file takes no more: all of it stays on the disk as long as anybody uses a piece."""


class Spool:
    """Writes pieces one behind the other, on the disk of a *directory*."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._file: SegmentFile | None = None
        self._size_bytes = 0

    def put(self, data: Buffer) -> FileRegion:
        """Write a piece; raises OSError. Who gets the region releases it."""
        if self._file is None or self._size_bytes >= FILE_BYTES:
            self.close()
            self._file, self._size_bytes = SegmentFile(self._files.temporary(self._directory)), 0
        try:
            self._file.file.append((data,), len(data))
        except OSError:
            # Nobody knows how much of it was written.
            self.close()
            raise
        self._file.acquire()
        self._size_bytes += len(data)
        return FileRegion(self._file, self._size_bytes - len(data), len(data))

    def close(self) -> None:
        """Write no more; a file is gone when its last piece is released."""
        file, self._file = self._file, None
        if file is not None:
            file.release()
