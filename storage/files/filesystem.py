"""The file system as the storage layer uses it; operating_system.py implements it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kafkacompat.wire.primitives import Buffer


class DirectoryLockedError(Exception):
    """Another process, or another part of this process, holds the lock."""


class SyncError(OSError):
    """A sync failed. The kernel may have dropped the unwritten pages, and the next sync would succeed without them."""


class DiskUsage(NamedTuple):
    """Total and free bytes of the file system that a path lies on."""

    total_bytes: int
    free_bytes: int


class File(Protocol):
    """An open file, readable anywhere and writable only at its end."""

    def append(self, parts: Sequence[Buffer], size_bytes: int) -> None:
        """Write the parts, together `size_bytes` long, at the end; raises OSError when not all of them could be written."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Read `size_bytes` bytes from `position`; fewer only at the end of the file."""

    def pread_nowait(self, size_bytes: int, position: int) -> Buffer | None:
        """Read like `pread`, but return None if that would wait for a disk, as far as the system can tell."""

    def is_resident(self, position: int, size_bytes: int) -> bool:
        """Return whether the page cache holds the range, as far as the system can tell."""

    def load(self, position: int, size_bytes: int) -> None:
        """Load the range into the page cache."""

    def sync(self) -> None:
        """Return when the contents are on the disk; raises SyncError."""

    def truncate(self, size_bytes: int) -> None:
        """Truncate the file to `size_bytes`."""

    def size(self) -> int:
        """Return the length in bytes."""

    def send(self, socket_fd: int, position: int, size_bytes: int) -> int:
        """Send bytes from `position` on to a socket, and return how many it accepted; see `send_file`. [loop]"""

    def close(self) -> None:
        """Close the descriptor."""


class FileLock(Protocol):
    """A held lock."""

    def release(self) -> None:
        """Release the lock."""


class Files(Protocol):
    """A file system. Every method may raise OSError; paths are absolute or relative strings."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open a file for reading and appending; `create` makes an absent one, else it is a FileNotFoundError."""

    def create_temporary(self, directory: str) -> File:
        """Create a nameless file in the file system of a directory; closing the file deletes it."""

    def read(self, path: str) -> bytes:
        """Return the whole contents."""

    def size(self, path: str) -> int:
        """Return the length in bytes."""

    def modified_ms(self, path: str) -> int:
        """Return the time of the last write, in milliseconds since 1970."""

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        """Set the time of the last write, in milliseconds since 1970."""

    def write_again(self, path: str, position: int) -> None:
        """Write the contents from `position` on over themselves, so that the next sync has to bring them to the disk."""

    def exists(self, path: str) -> bool:
        """Return whether a file or a directory has that name."""

    def is_directory(self, path: str) -> bool:
        """Return whether a directory has that name."""

    def target(self, path: str) -> str | None:
        """Resolve all links of a path; None if it leads nowhere."""

    def device(self, path: str) -> int:
        """Return the number of the file system that a path lies on."""

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; an existing one is no error."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing `new`."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def sync_directory(self, path: str) -> None:
        """Return when the directory's names are on the disk; raises SyncError."""

    def lock(self, path: str) -> FileLock:
        """Lock a file, created if absent, as Kafka does (fcntl). Raises DirectoryLockedError if the lock is held."""

    def disk_usage(self, path: str) -> DiskUsage:
        """Return total and free bytes of the file system that a path lies on."""
