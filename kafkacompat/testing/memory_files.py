"""A file system in memory, for brokers whose data nobody keeps.

It belongs to one thread. Files that properties name, such as certificates, are read from the system's. Nothing is ever lost or
cold, and a sync does nothing. `MEMORY_BYTES` bound the contents, so that a test that produces without end receives an error.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import TypeAlias

from kafkacompat.storage.files.filesystem import DirectoryLockedError, DiskUsage
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.wire.primitives import Buffer

MEMORY_BYTES = 2 << 30
"""The size of the file system; producers are rejected when the broker's reserve of it is reached."""

SEND_BYTES = 128 * 1024
"""Bytes that one call copies to a socket."""


class Contents:
    """The bytes of a file, which *users* open files share; they outlive the file's name while it is open."""

    __slots__ = ("data", "is_named", "modified_ms", "users")

    def __init__(self, modified_ms: int, *, is_named: bool = True) -> None:
        self.data = bytearray()
        self.modified_ms = modified_ms
        self.is_named = is_named
        self.users = 0


Folder: TypeAlias = "dict[str, Folder | Contents]"


class InMemoryFile:
    """An open file."""

    __slots__ = ("_contents", "_files")

    def __init__(self, files: InMemoryFiles, contents: Contents) -> None:
        self._files = files
        self._contents: Contents | None = contents
        contents.users += 1

    def _use(self) -> Contents:
        if self._contents is None:
            raise OSError(errno.EBADF, "the file is closed")
        return self._contents

    def append(self, parts: Sequence[Buffer], size_bytes: int) -> None:
        """See File.append."""
        contents = self._use()
        self._files.take(size_bytes)
        for part in parts:
            contents.data += part
        contents.modified_ms = self._files.now_ms()

    def pread(self, size_bytes: int, position: int) -> bytes:
        """See File.pread."""
        return bytes(memoryview(self._use().data)[position : position + size_bytes])

    def pread_nowait(self, size_bytes: int, position: int) -> Buffer | None:
        """See File.pread_nowait."""
        return self.pread(size_bytes, position)

    def is_resident(self, position: int, size_bytes: int) -> bool:
        """See File.is_resident."""
        return True

    def load(self, position: int, size_bytes: int) -> None:
        """See File.load."""

    def sync(self) -> None:
        """See File.sync."""

    def truncate(self, size_bytes: int) -> None:
        """See File.truncate."""
        contents = self._use()
        self._files.take(size_bytes - len(contents.data))
        if size_bytes > len(contents.data):
            contents.data += bytes(size_bytes - len(contents.data))
        else:
            del contents.data[size_bytes:]
        contents.modified_ms = self._files.now_ms()

    def size(self) -> int:
        """See File.size."""
        return len(self._use().data)

    def send(self, socket_fd: int, position: int, size_bytes: int) -> int:
        """See File.send."""
        data = self.pread(min(size_bytes, SEND_BYTES), position)
        return os.write(socket_fd, data) if data else 0

    def close(self) -> None:
        """See File.close."""
        contents, self._contents = self._contents, None
        if contents is not None:
            contents.users -= 1
            self._files.forget_if_unused(contents)


class InMemoryLock:
    """A held lock."""

    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path = path

    def release(self) -> None:
        """See FileLock.release."""
        self._locked.discard(self._path)


class InMemoryFiles:
    """The file system; *now_ms* returns the time of the files."""

    def __init__(self, now_ms: Callable[[], int], capacity_bytes: int = MEMORY_BYTES) -> None:
        self.now_ms = now_ms
        self._capacity_bytes = capacity_bytes
        self._root: Folder = {}
        self._locked: set[str] = set()
        self._outside = OsFiles(read_only=True)
        self._used_bytes = 0

    def take(self, size_bytes: int) -> None:
        """Count bytes that a file gains, or loses if negative; raises ENOSPC."""
        if self._used_bytes + size_bytes > self._capacity_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._used_bytes += size_bytes

    def _find(self, path: str) -> Folder | Contents:
        node: Folder | Contents = self._root
        for name in _split(path):
            if not isinstance(node, dict) or name not in node:
                raise _build_error(errno.ENOENT, path)
            node = node[name]
        return node

    def _folder(self, path: str) -> Folder:
        node = self._find(path)
        if not isinstance(node, dict):
            raise _build_error(errno.ENOTDIR, path)
        return node

    def _file(self, path: str) -> Contents:
        node = self._find(path)
        if isinstance(node, dict):
            raise _build_error(errno.EISDIR, path)
        return node

    def open(self, path: str, *, create: bool = False) -> InMemoryFile:
        """See Files.open."""
        folder, name = os.path.split(path)
        if create:
            self._folder(folder).setdefault(name, Contents(self.now_ms()))
        return InMemoryFile(self, self._file(path))

    def create_temporary(self, directory: str) -> InMemoryFile:
        """See Files.create_temporary."""
        self._folder(directory)
        return InMemoryFile(self, Contents(self.now_ms(), is_named=False))

    def read(self, path: str) -> bytes:
        """See Files.read."""
        if self._is_outside(path):
            return self._outside.read(path)
        return bytes(self._file(path).data)

    def size(self, path: str) -> int:
        """See Files.size."""
        return self._outside.size(path) if self._is_outside(path) else len(self._file(path).data)

    def modified_ms(self, path: str) -> int:
        """See Files.modified_ms."""
        return self._outside.modified_ms(path) if self._is_outside(path) else self._file(path).modified_ms

    def _is_outside(self, path: str) -> bool:
        """Return whether a file is not here, but in the system's files: properties name certificates there."""
        return not self.exists(path) and self._outside.exists(path)

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        """See Files.set_modified_ms."""
        self._file(path).modified_ms = time_ms

    def write_again(self, path: str, position: int) -> None:
        """See Files.write_again."""
        self._file(path)

    def exists(self, path: str) -> bool:
        """See Files.exists."""
        try:
            self._find(path)
        except FileNotFoundError:
            return False
        return True

    def is_directory(self, path: str) -> bool:
        """See Files.is_directory."""
        return self.exists(path) and isinstance(self._find(path), dict)

    def target(self, path: str) -> str | None:
        """See Files.target."""
        return path if self.exists(path) else None

    def device(self, path: str) -> int:
        """See Files.device."""
        return 0

    def list(self, path: str) -> list[str]:
        """See Files.list."""
        return sorted(self._folder(path))

    def make_directory(self, path: str) -> None:
        """See Files.make_directory."""
        folder = self._root
        for name in _split(path):
            node = folder.setdefault(name, {})
            if not isinstance(node, dict):
                raise _build_error(errno.EEXIST, path)
            folder = node

    def rename(self, old: str, new: str) -> None:
        """See Files.rename."""
        node = self._find(old)
        (old_folder, old_name), (new_folder, new_name) = os.path.split(old), os.path.split(new)
        target = self._folder(new_folder)
        if old == new:
            return
        self._forget(target.get(new_name))
        target[new_name] = node
        del self._folder(old_folder)[old_name]

    def remove(self, path: str) -> None:
        """See Files.remove."""
        self._forget(self._file(path))
        folder, name = os.path.split(path)
        del self._folder(folder)[name]

    def _forget(self, node: Folder | Contents | None) -> None:
        if isinstance(node, Contents):
            node.is_named = False
            self.forget_if_unused(node)

    def forget_if_unused(self, contents: Contents) -> None:
        """Give back the bytes of a file that has no name and is not open."""
        if not (contents.is_named or contents.users):
            self._used_bytes -= len(contents.data)

    def remove_directory(self, path: str) -> None:
        """See Files.remove_directory."""
        if self._folder(path):
            raise _build_error(errno.ENOTEMPTY, path)
        folder, name = os.path.split(path)
        del self._folder(folder)[name]

    def sync_directory(self, path: str) -> None:
        """See Files.sync_directory."""
        self._folder(path)

    def lock(self, path: str) -> InMemoryLock:
        """See Files.lock."""
        self.open(path, create=True).close()
        if path in self._locked:
            raise DirectoryLockedError(path)
        self._locked.add(path)
        return InMemoryLock(self._locked, path)

    def disk_usage(self, path: str) -> DiskUsage:
        """See Files.disk_usage."""
        self._find(path)
        return DiskUsage(self._capacity_bytes, self._capacity_bytes - self._used_bytes)


def _split(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _build_error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)  # the subclass that belongs to the code
