"""The only module that touches the operating system's files.

Everything above talks to the `Files` and `File` protocols, so that tests can put a file system in memory
(and crash it) where the disk would be. Calls that only Linux has sit behind feature tests made once, at
import: without them, or with KAFKACOMPAT_PORTABLE=1 in the environment, the portable way is taken.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kafkacompat.wire.primitives import Buffer

PORTABLE = os.environ.get("KAFKACOMPAT_PORTABLE") == "1"
"""True when the Linux-only calls must not be used even where they exist."""

RESIDENCY_STEP = 128 * 1024
"""Bytes between two probes of a residency test: the kernel's usual read-ahead window."""

LOAD_CHUNK = 256 * 1024

COPY_CHUNK = 128 * 1024
"""Bytes copied at once towards a socket where there is no sendfile."""


class DirectoryLockedError(Exception):
    """Another process, or another part of this one, holds the lock."""


class DiskUsage(NamedTuple):
    """Bytes of the file system that a path lies on."""

    total_bytes: int
    free_bytes: int


class File(Protocol):
    """An open file: read anywhere, written only at its end."""

    def append(self, parts: Sequence[Buffer], size_bytes: int) -> None:
        """Write the parts, together `size_bytes` long, at the end; OSError when not all could be written."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        """At most `size_bytes` bytes from `position`; fewer only at the end of the file."""

    def pread_nowait(self, size_bytes: int, position: int) -> Buffer | None:
        """Like pread, but None when it would wait for a disk, as far as the system can tell."""

    def is_resident(self, position: int, size_bytes: int) -> bool:
        """Whether reading the range would wait for no disk, as far as the system can tell."""

    def load(self, position: int, size_bytes: int) -> None:
        """Bring the range into the page cache."""

    def sync(self) -> None:
        """Return when the contents are on the disk."""

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to `size_bytes`."""

    def size(self) -> int:
        """Length in bytes."""

    def fileno(self) -> int:
        """The descriptor, for sendfile."""

    def close(self) -> None:
        """Give the descriptor back."""


class Lock(Protocol):
    """A held lock."""

    def release(self) -> None:
        """Let it go."""


class Files(Protocol):
    """A file system. Every method may raise OSError; paths are absolute or relative strings."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and appending; FileNotFoundError unless `create`."""

    def read(self, path: str) -> bytes:
        """The whole contents."""

    def size(self, path: str) -> int:
        """Length in bytes."""

    def modified_ms(self, path: str) -> int:
        """Time of the last write, milliseconds since 1970."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory of that name."""

    def is_directory(self, path: str) -> bool:
        """Whether there is a directory of that name."""

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted."""

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; no error when it exists."""

    def rename(self, old: str, new: str) -> None:
        """Rename, replacing `new`."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def sync_directory(self, path: str) -> None:
        """Return when the directory's names are on the disk."""

    def lock(self, path: str) -> Lock:
        """Lock a file, created when absent, as Kafka does (fcntl); DirectoryLockedError when it is held."""

    def disk_usage(self, path: str) -> DiskUsage:
        """Total and free bytes of the file system the path lies on."""


_sync: Callable[[int], None] = os.fdatasync if hasattr(os, "fdatasync") and not PORTABLE else os.fsync
_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None) if hasattr(os, "preadv") and not PORTABLE else None


class OsFile:
    """An open file of the operating system."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def append(self, parts: Sequence[Buffer], size_bytes: int) -> None:
        """See File.append."""
        written = os.writev(self._fd, parts)
        if written != size_bytes:
            self._append_rest(parts, written)

    def _append_rest(self, parts: Sequence[Buffer], written: int) -> None:
        rest = memoryview(b"".join(parts))[written:]
        while rest:
            count = os.write(self._fd, rest)
            if count == 0:
                raise OSError(errno.EIO, "the file takes no more bytes")
            rest = rest[count:]

    def pread(self, size_bytes: int, position: int) -> bytes:
        """See File.pread."""
        data = os.pread(self._fd, size_bytes, position)
        if len(data) == size_bytes or not data:
            return data
        more = self.pread(size_bytes - len(data), position + len(data))
        return data + more

    def pread_nowait(self, size_bytes: int, position: int) -> Buffer | None:
        """See File.pread_nowait."""
        if _NOWAIT is None:
            return self.pread(size_bytes, position)
        data = bytearray(size_bytes)
        try:
            count = os.preadv(self._fd, [data], position, _NOWAIT)
        except OSError as error:
            return None if error.errno == errno.EAGAIN else self.pread(size_bytes, position)
        return memoryview(data)[:count]

    def is_resident(self, position: int, size_bytes: int) -> bool:
        """See File.is_resident; always True where the system cannot tell."""
        if _NOWAIT is None or size_bytes <= 0:
            return True
        scratch = [bytearray(1)]
        last = position + size_bytes - 1
        try:
            for probe in range(position, last, RESIDENCY_STEP):
                os.preadv(self._fd, scratch, probe, _NOWAIT)
            os.preadv(self._fd, scratch, last, _NOWAIT)
        except OSError as error:  # EAGAIN: on the disk only; any other: this file system cannot tell
            return error.errno != errno.EAGAIN
        return True

    def load(self, position: int, size_bytes: int) -> None:
        """See File.load."""
        end = position + size_bytes
        for start in range(position, end, LOAD_CHUNK):
            os.pread(self._fd, min(LOAD_CHUNK, end - start), start)

    def sync(self) -> None:
        """See File.sync."""
        _sync(self._fd)

    def truncate(self, size_bytes: int) -> None:
        """See File.truncate."""
        os.ftruncate(self._fd, size_bytes)

    def size(self) -> int:
        """See File.size."""
        return os.fstat(self._fd).st_size

    def fileno(self) -> int:
        """See File.fileno."""
        return self._fd

    def close(self) -> None:
        """See File.close."""
        os.close(self._fd)


_locked_inodes: set[tuple[int, int]] = set()
"""fcntl locks belong to the process, so a second lock from within would succeed: this set refuses it."""


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


class OsLock:
    """A held fcntl lock."""

    def __init__(self, fd: int, inode: tuple[int, int]) -> None:
        self._fd = fd
        self._inode = inode

    def release(self) -> None:
        """See Lock.release."""
        _locked_inodes.discard(self._inode)
        os.close(self._fd)


class OsFiles:
    """The operating system's file system."""

    def open(self, path: str, *, create: bool = False) -> OsFile:
        """See Files.open."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OsFile(os.open(path, flags, 0o644))

    def read(self, path: str) -> bytes:
        """See Files.read."""
        with open(path, "rb") as file:
            return file.read()

    def size(self, path: str) -> int:
        """See Files.size."""
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        """See Files.modified_ms."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def exists(self, path: str) -> bool:
        """See Files.exists."""
        return os.path.lexists(path)

    def is_directory(self, path: str) -> bool:
        """See Files.is_directory."""
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        """See Files.list."""
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        """See Files.make_directory."""
        os.makedirs(path, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        """See Files.rename."""
        os.replace(old, new)

    def remove(self, path: str) -> None:
        """See Files.remove."""
        os.unlink(path)

    def remove_directory(self, path: str) -> None:
        """See Files.remove_directory."""
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        """See Files.sync_directory."""
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> OsLock:
        """See Files.lock."""
        # Asked before opening: closing any descriptor of a file drops the locks this process holds on it.
        if os.path.exists(path) and _inode(os.stat(path)) in _locked_inodes:
            raise DirectoryLockedError(path)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        inode = _inode(os.fstat(fd))
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise DirectoryLockedError(path) from error
        _locked_inodes.add(inode)
        return OsLock(fd, inode)

    def disk_usage(self, path: str) -> DiskUsage:
        """See Files.disk_usage."""
        status = os.statvfs(path)
        return DiskUsage(status.f_frsize * status.f_blocks, status.f_frsize * status.f_bavail)


def _send_by_copying(socket_fd: int, file_fd: int, position: int, size_bytes: int) -> int:
    data = os.pread(file_fd, min(size_bytes, COPY_CHUNK), position)
    return os.write(socket_fd, data) if data else 0


# Outside Linux sendfile takes other arguments.
def _send_by_kernel(socket_fd: int, file_fd: int, position: int, size_bytes: int) -> int:
    return os.sendfile(socket_fd, file_fd, position, size_bytes)


send_file: Callable[[int, int, int, int], int] = (
    _send_by_kernel if sys.platform == "linux" and not PORTABLE else _send_by_copying
)
"""send_file(socket descriptor, file descriptor, position, size_bytes) -> bytes taken by the socket.

0 means that the file ends at `position`; BlockingIOError that the socket takes nothing now. [loop]
"""
