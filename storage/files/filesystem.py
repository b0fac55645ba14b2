"""What the storage layer asks of a file system; files.py gives it the operating system's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kafkacompat.wire.primitives import Buffer


class DirectoryLockedError(Exception):
    """Another process, or another part of this one, holds the lock."""


class SyncError(OSError):
    """A sync failed: the kernel may have dropped what it could not write, and the next sync would succeed without it."""


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
        """Return when the contents are on the disk; raises SyncError."""

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

    def temporary(self, directory: str) -> File:
        """Make a file without a name that lies in a directory's file system and is gone when it is closed."""

    def read(self, path: str) -> bytes:
        """The whole contents."""

    def size(self, path: str) -> int:
        """Length in bytes."""

    def modified_ms(self, path: str) -> int:
        """Time of the last write, milliseconds since 1970."""

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        """Let a file have been written last at a time."""

    def write_again(self, path: str, position: int) -> None:
        """Write a file once more from `position` on, with what it holds: the next sync has to bring that to the disk."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory of that name."""

    def is_directory(self, path: str) -> bool:
        """Whether there is a directory of that name."""

    def target(self, path: str) -> str | None:
        """Where a path leads through all links; None when that is nowhere."""

    def device(self, path: str) -> int:
        """Which file system a path lies on."""

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
        """Return when the directory's names are on the disk; raises SyncError."""

    def lock(self, path: str) -> Lock:
        """Lock a file, created when absent, as Kafka does (fcntl); DirectoryLockedError when it is held."""

    def disk_usage(self, path: str) -> DiskUsage:
        """Total and free bytes of the file system the path lies on."""
