"""A file that is open in a file system in memory."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkacompat.storage.files.filesystem import SyncError
from kafkacompat.wire.primitives import Buffer
from tests.fakes.memory_tree import Contents

if TYPE_CHECKING:
    from tests.fakes.memory_files import MemoryFiles


class MemoryFile:
    """An open file; unusable after a crash."""

    def __init__(self, files: MemoryFiles, contents: Contents) -> None:
        self._files = files
        self._contents = contents
        self._life = files.life
        self._closed = False
        files.open_handles += 1

    def _use(self) -> bytearray:
        if self._closed or self._life != self._files.life:
            raise OSError(errno.EBADF, "the file is closed")
        return self._contents.data

    def append(self, parts: Sequence[Buffer], size_bytes: int) -> None:
        """See File.append."""
        data = self._use()
        written = b"".join(parts)
        assert len(written) == size_bytes
        start = len(data)
        self._files.before_change("append")
        taken = self._files.fail("append", len(written))
        self._contents.append(written[: len(written) if taken is None else taken.count])
        self._contents.modified_ms = self._files.now_ms
        self._files.last_write = (self._contents, start, len(data) - start)
        if taken is not None:
            raise taken.error

    def pread(self, size_bytes: int, position: int) -> bytes:
        """See File.pread."""
        data = self._use()
        self._files.fail_plainly("pread")
        return bytes(data[position : position + size_bytes])

    def pread_nowait(self, size_bytes: int, position: int) -> Buffer | None:
        """See File.pread_nowait; `MemoryFiles.cold` decides."""
        return None if self._files.cold else self.pread(size_bytes, position)

    def is_resident(self, position: int, size_bytes: int) -> bool:
        """See File.is_resident."""
        self._use()
        return not self._files.cold

    def load(self, position: int, size_bytes: int) -> None:
        """See File.load."""
        self._use()
        self._files.cold = False

    def sync(self) -> None:
        """See File.sync."""
        self._use()
        self._files.before_change("sync")
        try:
            self._files.fail_sync("sync")
        except SyncError:
            self._contents.let_go()
            raise
        self._contents.sync()
        if self._files.last_write is not None and self._files.last_write[0] is self._contents:
            self._files.last_write = None

    def truncate(self, size_bytes: int) -> None:
        """See File.truncate."""
        self._use()
        self._files.before_change("truncate")
        self._files.fail_plainly("truncate")
        self._contents.truncate(size_bytes)

    def size(self) -> int:
        """See File.size."""
        return len(self._use())

    def send(self, socket_fd: int, position: int, size_bytes: int) -> int:
        """See File.send: the sockets of tests are in memory, too, and copy."""
        raise OSError(errno.EBADF, "a file in memory is copied")

    def close(self) -> None:
        """See File.close."""
        if not self._closed and self._life == self._files.life:
            self._closed = True
            self._files.open_handles -= 1
