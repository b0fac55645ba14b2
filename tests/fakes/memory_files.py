"""A file system in memory that can lose what was not synced, fail on demand, and be crashed.

It knows two truths for each file and folder (memory_tree.py): what a process sees, and what is on the disk. `sync` and
`sync_directory` copy the first to the second; `crash` copies back. `after` is another file system: what a power failure
in this instant leaves.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kafkacompat.storage.files.filesystem import DirectoryLockedError, DiskUsage, SyncError
from tests.fakes.memory_file import MemoryFile
from tests.fakes.memory_tree import Contents, Folder, NameChange, Node, PowerFailure, copied, fallen, fingerprint, lose

_DISK_BYTES = 1 << 40


class MemoryLock:
    """A held lock; a crash lets go of it."""

    def __init__(self, files: MemoryFiles, path: str) -> None:
        self._files = files
        self._path = path

    def release(self) -> None:
        """See FileLock.release."""
        self._files.locked.discard(self._path)


@dataclass
class Failure:
    """What an operation does instead of succeeding: raise `error`, an append after `count` bytes."""

    error: OSError
    count: int = 0


class MemoryFiles:
    """The whole file system; `cold` says that nothing is in the page cache."""

    def __init__(self) -> None:
        self._root = Folder()
        self._failures: dict[str, Callable[[int], Failure | None]] = {}
        self.now_ms = 0
        self.cold = False
        self.life = 0
        self.open_handles = 0
        self.free_bytes = _DISK_BYTES // 2
        self.devices: dict[str, int] = {}
        self.locked: set[str] = set()
        self.last_write: tuple[Contents, int, int] | None = None
        self.before_change: Callable[[str], None] = lambda operation: None
        """Told of each operation before it changes anything."""

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

    def succeed(self) -> None:
        """Let all operations succeed again."""
        self._failures.clear()

    @contextmanager
    def without_failures(self) -> Iterator[None]:
        """Let an observer read, without a failure that is meant for the broker."""
        failures, self._failures = self._failures, {}
        try:
            yield
        finally:
            self._failures = failures

    def fail(self, operation: str, size_bytes: int = 0) -> Failure | None:
        """The failure that is due for an operation."""
        due = self._failures.get(operation)
        return due(size_bytes) if due else None

    def fail_plainly(self, operation: str) -> None:
        """Raise the failure that is due for an operation."""
        failure = self.fail(operation)
        if failure is not None:
            raise failure.error

    def fail_sync(self, operation: str) -> None:
        """Raise the failure that is due for an operation that syncs."""
        failure = self.fail(operation)
        if failure is not None:
            raise SyncError(*failure.error.args)

    def crash(self, lose_unsynced: bool = True, tear_last_write: int | None = None) -> None:
        """End the process and, with `lose_unsynced`, the power too.

        Of the last write, unless it was synced, only `tear_last_write` bytes are there afterwards, when given.
        """
        last_write, written = self.last_write, bytes(self.last_write[0].data) if self.last_write else b""
        if lose_unsynced:
            lose(self._root)
        if tear_last_write is not None and last_write is not None:
            contents, start, size_bytes = last_write
            contents.data = bytearray(written[: start + min(tear_last_write, size_bytes)])
        self.life += 1
        self.open_handles = 0
        self.locked.clear()
        self._failures.clear()
        self.last_write = None

    def after(self, failure: PowerFailure) -> MemoryFiles:
        """Return the files that the next process finds if the power fails now; this file system stays as it is."""
        return self._with(fallen(self._root, failure))

    def killed(self) -> MemoryFiles:
        """Return the files that the next process finds if this one ends now; unsynced changes are not on the disk yet."""
        return self._with(copied(self._root, {}))

    def hand_over(self) -> MemoryFiles:
        """End this process and return the files that the next one finds; nothing that this one still does counts any more."""
        root, self._root = self._root, Folder()
        self.life += 1
        return self._with(root)

    def _with(self, root: Folder) -> MemoryFiles:
        files = MemoryFiles()
        files._root = root
        files.now_ms = self.now_ms
        files.free_bytes = self.free_bytes
        return files

    def unsynced_names(self, path: str) -> int:
        """How many changes of names in a folder are not on the disk."""
        return len(self._folder(path).unsynced)

    def fingerprint(self) -> int:
        """Return a number that is equal for file systems in which a process sees the same."""
        return fingerprint(self._root)

    # --- the file system ---

    def _find(self, path: str) -> Node:
        node: Node = self._root
        for name in _parts(path):
            if not isinstance(node, Folder) or name not in node.names:
                raise _error(errno.ENOENT, path)
            node = node.names[name]
        return node

    def _folder(self, path: str) -> Folder:
        node = self._find(path)
        if not isinstance(node, Folder):
            raise _error(errno.ENOTDIR, path)
        return node

    def _file(self, path: str) -> Contents:
        node = self._find(path)
        if isinstance(node, Folder):
            raise _error(errno.EISDIR, path)
        return node

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        """See Files.open."""
        self.fail_plainly("open")
        folder, name = os.path.split(path)
        if create and name not in self._folder(folder).names:
            self.before_change("create")
            self._folder(folder).change(NameChange(None, name, Contents(modified_ms=self.now_ms)))
        return MemoryFile(self, self._file(path))

    def create_temporary(self, directory: str) -> MemoryFile:
        """See Files.create_temporary."""
        self.fail_plainly("open")
        return MemoryFile(self, Contents())

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

    def write_again(self, path: str, position: int) -> None:
        """See Files.write_again."""
        contents = self._file(path)
        self.before_change("write_again")
        self.fail_plainly("write_again")
        contents.write_again(position)

    def exists(self, path: str) -> bool:
        """See Files.exists."""
        try:
            return self._find(path) is not None
        except FileNotFoundError:
            return False

    def is_directory(self, path: str) -> bool:
        """See Files.is_directory."""
        return self.exists(path) and isinstance(self._find(path), Folder)

    def target(self, path: str) -> str | None:
        """See Files.target; there are no links here."""
        return path if self.exists(path) else None

    def device(self, path: str) -> int:
        """See Files.device."""
        return self.devices.get(path, 0)

    def list(self, path: str) -> list[str]:
        """See Files.list."""
        return sorted(self._folder(path).names)

    def make_directory(self, path: str) -> None:
        """See Files.make_directory."""
        folder = self._root
        for name in _parts(path):
            if name not in folder.names:
                self.before_change("make_directory")
                folder.change(NameChange(None, name, Folder()))
            node = folder.names[name]
            if not isinstance(node, Folder):
                raise _error(errno.EEXIST, path)
            folder = node

    def rename(self, old: str, new: str) -> None:
        """See Files.rename."""
        node = self._find(old)
        self.before_change("rename")
        old_folder, old_name = os.path.split(old)
        new_folder, new_name = os.path.split(new)
        if old_folder == new_folder:
            self._folder(old_folder).change(NameChange(old_name, new_name, node))
        else:
            self._folder(old_folder).change(NameChange(old_name, None, None))
            self._folder(new_folder).change(NameChange(None, new_name, node))

    def remove(self, path: str) -> None:
        """See Files.remove."""
        self._file(path)
        self.before_change("remove")
        folder, name = os.path.split(path)
        self._folder(folder).change(NameChange(name, None, None))

    def remove_directory(self, path: str) -> None:
        """See Files.remove_directory."""
        if self._folder(path).names:
            raise _error(errno.ENOTEMPTY, path)
        self.before_change("remove_directory")
        folder, name = os.path.split(path)
        self._folder(folder).change(NameChange(name, None, None))

    def sync_directory(self, path: str) -> None:
        """See Files.sync_directory."""
        folder = self._folder(path)
        self.before_change("sync_directory")
        self.fail_sync("sync_directory")
        folder.sync()

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
