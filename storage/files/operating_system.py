"""The only module that touches the operating system's files.

All other modules use the `Files` and `File` protocols, so that tests can replace the disk by a file system in
memory, and crash it. Calls that only Linux has are used where the system has them, which import decides once;
KAFKACOMPAT_PORTABLE=1 in the environment forbids them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import sys
from collections.abc import Callable, Sequence

from kafkacompat.storage.files.filesystem import DirectoryLockedError, DiskUsage, SyncError
from kafkacompat.wire.primitives import Buffer

PORTABLE = os.environ.get("KAFKACOMPAT_PORTABLE") == "1"
"""True when the Linux-only calls must not be used even where they exist."""

RESIDENCY_STEP = 256 * 1024
"""Bytes between two probes of a residency test: the kernel's usual read-ahead window."""

LOAD_CHUNK = 256 * 1024

COPY_CHUNK = 128 * 1024
"""Bytes copied to a socket at once on systems without sendfile."""

BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"

_HAS_NOWAIT = hasattr(os, "preadv") and hasattr(os, "RWF_NOWAIT")
_HAS_FDATASYNC = hasattr(os, "fdatasync")


def _sync_descriptor(sync: Callable[[int], None], fd: int) -> None:
    try:
        sync(fd)
    except OSError as error:
        raise SyncError(*error.args) from error


class PortableFile:
    """An open file of any POSIX system, which cannot tell what the page cache holds."""

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
                raise OSError(errno.EIO, "the file accepts no more bytes")
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
        return self.pread(size_bytes, position)

    def is_resident(self, position: int, size_bytes: int) -> bool:
        """See File.is_resident."""
        return True

    def load(self, position: int, size_bytes: int) -> None:
        """See File.load."""
        end = position + size_bytes
        for start in range(position, end, LOAD_CHUNK):
            os.pread(self._fd, min(LOAD_CHUNK, end - start), start)

    def sync(self) -> None:
        """See File.sync."""
        _sync_descriptor(os.fsync, self._fd)

    def truncate(self, size_bytes: int) -> None:
        """See File.truncate."""
        os.ftruncate(self._fd, size_bytes)

    def size(self) -> int:
        """See File.size."""
        return os.fstat(self._fd).st_size

    def send(self, socket_fd: int, position: int, size_bytes: int) -> int:
        """See File.send."""
        return send_file(socket_fd, self._fd, position, size_bytes)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._fd

    def close(self) -> None:
        """See File.close."""
        os.close(self._fd)


class LinuxFile(PortableFile):
    """An open file of Linux, which syncs cheaper and tells what the page cache holds."""

    __slots__ = ()

    def pread_nowait(self, size_bytes: int, position: int) -> Buffer | None:
        """See File.pread_nowait."""
        data = bytearray(size_bytes)
        try:
            count = os.preadv(self._fd, [data], position, os.RWF_NOWAIT)
        except OSError as error:  # EAGAIN: the disk alone has it; any other error: this file system cannot tell
            return None if error.errno == errno.EAGAIN else self.pread(size_bytes, position)
        return memoryview(data)[:count]

    def is_resident(self, position: int, size_bytes: int) -> bool:
        """See File.is_resident."""
        scratch = [bytearray(1)]
        last = position + size_bytes - 1
        try:
            for probe in range(position, last, RESIDENCY_STEP):
                os.preadv(self._fd, scratch, probe, os.RWF_NOWAIT)
            os.preadv(self._fd, scratch, max(position, last), os.RWF_NOWAIT)
        except OSError as error:
            return error.errno != errno.EAGAIN
        return True

    def sync(self) -> None:
        """See File.sync."""
        _sync_descriptor(os.fdatasync, self._fd)


_locked_inodes: set[tuple[int, int]] = set()
"""Files that this process has locked. fcntl locks belong to the process, so a second lock would succeed otherwise."""


def raise_open_file_limit() -> int:
    """Raise the limit of open files to the hard limit, as a JVM does, and return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def read_boot_id() -> str:
    """Return the id of the kernel's present boot; "" on a system without one."""
    try:
        with open(BOOT_ID_FILE, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _identify_file(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


class OsLock:
    """A held fcntl lock."""

    def __init__(self, fd: int, inode: tuple[int, int]) -> None:
        self._fd = fd
        self._inode = inode

    def release(self) -> None:
        """See FileLock.release."""
        _locked_inodes.discard(self._inode)
        os.close(self._fd)


class OsFiles:
    """The operating system's file system.

    `portable` restricts it to calls that every POSIX system has. `read_only` opens files for reading alone, which needs
    no permission to write.
    """

    def __init__(self, portable: bool = PORTABLE, *, read_only: bool = False) -> None:
        self._access = os.O_RDONLY if read_only else os.O_RDWR | os.O_APPEND
        self._file = PortableFile if portable or not (_HAS_NOWAIT and _HAS_FDATASYNC) else LinuxFile

    def open(self, path: str, *, create: bool = False) -> PortableFile:
        """See Files.open."""
        flags = self._access | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return self._file(os.open(path, flags, 0o644))

    def create_temporary(self, directory: str) -> PortableFile:
        """See Files.create_temporary."""
        from tempfile import TemporaryFile  # rarely needed, and slow to import

        with TemporaryFile(dir=directory) as file:
            return self._file(os.dup(file.fileno()))

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

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        """See Files.set_modified_ms."""
        os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))

    def write_again(self, path: str, position: int) -> None:
        """See Files.write_again."""
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)  # with O_APPEND, Linux appends and ignores the position
        try:
            while data := os.pread(fd, LOAD_CHUNK, position):
                position += os.pwrite(fd, data, position)
        finally:
            os.close(fd)

    def exists(self, path: str) -> bool:
        """See Files.exists."""
        return os.path.lexists(path)

    def is_directory(self, path: str) -> bool:
        """See Files.is_directory."""
        return os.path.isdir(path)

    def target(self, path: str) -> str | None:
        """See Files.target."""
        with contextlib.suppress(OSError):
            return os.path.realpath(path, strict=True)
        return None

    def device(self, path: str) -> int:
        """See Files.device."""
        return os.stat(path).st_dev

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
        (os.unlink if os.path.islink(path) else os.rmdir)(path)  # a partition's folder may be a link to another disk

    def sync_directory(self, path: str) -> None:
        """See Files.sync_directory."""
        fd = os.open(path, os.O_RDONLY)
        try:
            _sync_descriptor(os.fsync, fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> OsLock:
        """See Files.lock."""
        # Test before opening: closing any descriptor of a file drops the locks that this process holds on it.
        if os.path.exists(path) and _identify_file(os.stat(path)) in _locked_inodes:
            raise DirectoryLockedError(path)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        inode = _identify_file(os.fstat(fd))
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
"""send_file(socket descriptor, file descriptor, position, size_bytes) -> number of bytes that the socket accepted.

0 means that the file ends at `position`. Raises BlockingIOError if the socket accepts nothing now. [loop]
"""
