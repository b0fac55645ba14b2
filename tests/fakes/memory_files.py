"""A file system in memory that can lose what was not synced, fail on demand, and be crashed.

It knows two truths for each file and folder: what a process sees, and what is on the disk. `sync` and
`sync_directory` copy the first to the second; `crash` copies back.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kafkacompat.storage.filesystem import DirectoryLockedError, DiskUsage
from kafkacompat.wire.primitives import Buffer


@dataclass(eq=False)
class _Contents:
    """A file; several open handles may share it."""

    data: bytearray = field(default_factory=bytearray)
    on_disk: bytes = b""
    modified_ms: int = 0


@dataclass(eq=False)
class _Folder:
    names: dict[str, _Node] = field(default_factory=dict)
    on_disk: dict[str, _Node] = field(default_factory=dict)


_Node: TypeAlias = "_Contents | _Folder"

_DISK_BYTES = 1 << 40


class MemoryFile:
    """An open file; unusable after a crash."""

    def __init__(self, files: MemoryFiles, contents: _Contents) -> None:
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
        taken = self._files.fail("append", len(written))
        data += written[: len(written) if taken is None else taken.count]
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
        data = self._use()
        self._files.fail_plainly("sync")
        self._contents.on_disk = bytes(data)
        if self._files.last_write is not None and self._files.last_write[0] is self._contents:
            self._files.last_write = None

    def truncate(self, size_bytes: int) -> None:
        """See File.truncate."""
        data = self._use()
        self._files.fail_plainly("truncate")
        del data[size_bytes:]
        data.extend(bytes(size_bytes - len(data)))

    def size(self) -> int:
        """See File.size."""
        return len(self._use())

    def fileno(self) -> int:
        """There is no descriptor."""
        raise OSError(errno.EBADF, "a file in memory has no descriptor")

    def close(self) -> None:
        """See File.close."""
        if not self._closed and self._life == self._files.life:
            self._closed = True
            self._files.open_handles -= 1


class MemoryLock:
    """A held lock; a crash lets go of it."""

    def __init__(self, files: MemoryFiles, path: str) -> None:
        self._files = files
        self._path = path

    def release(self) -> None:
        """See Lock.release."""
        self._files.locked.discard(self._path)


@dataclass
class Failure:
    """What an operation does instead of succeeding: raise `error`, an append after `count` bytes."""

    error: OSError
    count: int = 0


class MemoryFiles:
    """The whole file system; `cold` says that nothing is in the page cache."""

    def __init__(self) -> None:
        self._root = _Folder()
        self._failures: dict[str, Callable[[int], Failure | None]] = {}
        self.now_ms = 0
        self.cold = False
        self.life = 0
        self.open_handles = 0
        self.free_bytes = _DISK_BYTES // 2
        self.locked: set[str] = set()
        self.last_write: tuple[_Contents, int, int] | None = None

    # --- making it fail ---

    def fail_on(self, operation: str, error: int, after_bytes: int = 0, times: int = 1) -> None:
        """Let the next `times` operations (append, pread, sync, truncate, sync_directory, open) fail with an errno."""
        left = [times]

        def failing(size_bytes: int) -> Failure | None:
            if not left[0]:
                return None
            left[0] -= 1
            return Failure(OSError(error, os.strerror(error)), min(after_bytes, size_bytes))

        self._failures[operation] = failing

    def fail(self, operation: str, size_bytes: int = 0) -> Failure | None:
        """The failure that is due for an operation."""
        due = self._failures.get(operation)
        return due(size_bytes) if due else None

    def fail_plainly(self, operation: str) -> None:
        """Raise the failure that is due for an operation."""
        failure = self.fail(operation)
        if failure is not None:
            raise failure.error

    def crash(self, lose_unsynced: bool = True, tear_last_write: int | None = None) -> None:
        """End the process and, with `lose_unsynced`, the power too.

        Of the last write, unless it was synced, only `tear_last_write` bytes are there afterwards, when given.
        """
        last_write, written = self.last_write, bytes(self.last_write[0].data) if self.last_write else b""
        if lose_unsynced:
            _lose(self._root)
        if tear_last_write is not None and last_write is not None:
            contents, start, size_bytes = last_write
            contents.data = bytearray(written[: start + min(tear_last_write, size_bytes)])
        self.life += 1
        self.open_handles = 0
        self.locked.clear()
        self._failures.clear()
        self.last_write = None

    # --- the file system ---

    def _find(self, path: str) -> _Node:
        node: _Node = self._root
        for name in _parts(path):
            if not isinstance(node, _Folder) or name not in node.names:
                raise _error(errno.ENOENT, path)
            node = node.names[name]
        return node

    def _folder(self, path: str) -> _Folder:
        node = self._find(path)
        if not isinstance(node, _Folder):
            raise _error(errno.ENOTDIR, path)
        return node

    def _file(self, path: str) -> _Contents:
        node = self._find(path)
        if isinstance(node, _Folder):
            raise _error(errno.EISDIR, path)
        return node

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        """See Files.open."""
        self.fail_plainly("open")
        folder, name = os.path.split(path)
        if create:
            self._folder(folder).names.setdefault(name, _Contents(modified_ms=self.now_ms))
        return MemoryFile(self, self._file(path))

    def temporary(self, directory: str) -> MemoryFile:
        """See Files.temporary."""
        self.fail_plainly("open")
        return MemoryFile(self, _Contents())

    def read(self, path: str) -> bytes:
        """See Files.read."""
        return bytes(self._file(path).data)

    def size(self, path: str) -> int:
        """See Files.size."""
        return len(self._file(path).data)

    def modified_ms(self, path: str) -> int:
        """See Files.modified_ms."""
        return self._file(path).modified_ms

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        """See Files.set_modified_ms."""
        self._file(path).modified_ms = time_ms

    def exists(self, path: str) -> bool:
        """See Files.exists."""
        try:
            return self._find(path) is not None
        except FileNotFoundError:
            return False

    def is_directory(self, path: str) -> bool:
        """See Files.is_directory."""
        return self.exists(path) and isinstance(self._find(path), _Folder)

    def list(self, path: str) -> list[str]:
        """See Files.list."""
        return sorted(self._folder(path).names)

    def make_directory(self, path: str) -> None:
        """See Files.make_directory."""
        folder = self._root
        for name in _parts(path):
            node = folder.names.setdefault(name, _Folder())
            if not isinstance(node, _Folder):
                raise _error(errno.EEXIST, path)
            folder = node

    def rename(self, old: str, new: str) -> None:
        """See Files.rename."""
        self._find(old)
        old_folder, old_name = os.path.split(old)
        new_folder, new_name = os.path.split(new)
        self._folder(new_folder).names[new_name] = self._folder(old_folder).names.pop(old_name)

    def remove(self, path: str) -> None:
        """See Files.remove."""
        self._file(path)
        folder, name = os.path.split(path)
        del self._folder(folder).names[name]

    def remove_directory(self, path: str) -> None:
        """See Files.remove_directory."""
        if self._folder(path).names:
            raise _error(errno.ENOTEMPTY, path)
        folder, name = os.path.split(path)
        del self._folder(folder).names[name]

    def sync_directory(self, path: str) -> None:
        """See Files.sync_directory."""
        folder = self._folder(path)
        self.fail_plainly("sync_directory")
        folder.on_disk = dict(folder.names)

    def lock(self, path: str) -> MemoryLock:
        """See Files.lock."""
        self.open(path, create=True).close()
        if path in self.locked:
            raise DirectoryLockedError(path)
        self.locked.add(path)
        return MemoryLock(self, path)

    def disk_usage(self, path: str) -> DiskUsage:
        """See Files.disk_usage."""
        self._find(path)
        return DiskUsage(_DISK_BYTES, self.free_bytes)


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)  # the subclass that belongs to the code


def _parts(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _lose(folder: _Folder) -> None:
    folder.names = dict(folder.on_disk)
    for node in folder.names.values():
        if isinstance(node, _Folder):
            _lose(node)
        else:
            node.data = bytearray(node.on_disk)
