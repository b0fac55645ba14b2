"""Open log files that threads and connections share: their uses are counted, their number is bounded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Protocol

from kafkacompat.storage.files.filesystem import File
from kafkacompat.wire.primitives import Buffer


class SegmentFile:
    """A segment's open log file, closed when the last user has released it; leaving a `with` block releases it, too."""

    __slots__ = ("_lock", "_users", "cuts", "file")

    def __init__(self, file: File, cuts: Sequence[int] = ()) -> None:
        self.file = file
        self.cuts = cuts
        """Positions at which the segment was truncated, oldest first: bytes after a cut are other bytes than before it."""
        self._users = 1
        self._lock = Lock()

    def acquire(self) -> bool:
        """Count one more user; False if the file is closed already."""
        with self._lock:
            if self._users == 0:
                return False
            self._users += 1
            return True

    def __enter__(self) -> SegmentFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Count one user less; the last user's release closes the file."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self.file.close()


class RegionGoneError(OSError):
    """A file was truncated within a region that a response has announced: the connection has to be closed."""


class FileRegion:
    """Bytes of a log file that are sent unchanged.

    The region keeps the file open until `release`, even if the segment is deleted or replaced. If the file is truncated
    within the region, reads raise RegionGoneError, even after the log has grown again.
    """

    __slots__ = ("_cuts_before", "_file", "position", "size_bytes")

    def __init__(self, file: SegmentFile, position: int, size_bytes: int) -> None:
        """Take over one use of `file`, which the caller has acquired."""
        self._file: SegmentFile | None = file
        self._cuts_before = len(file.cuts)
        self.position = position
        self.size_bytes = size_bytes

    def _open_file(self) -> File:
        if self._file is None:
            raise ValueError("this region was released")
        return self._file.file

    def _whole_file(self) -> File:
        file = self._open_file()
        cuts = self._file.cuts if self._file is not None else ()
        if len(cuts) != self._cuts_before and min(cuts[self._cuts_before :]) < self.position + self.size_bytes:
            raise RegionGoneError(f"the file of a region from {self.position} on was cut at {min(cuts)}")
        return file

    def send(self, socket_fd: int, offset_in_region: int, size_bytes: int) -> int:
        """Send bytes of the region to a socket, and return how many it accepted; 0 means that the file has ended. [loop]"""
        return self._whole_file().send(socket_fd, self.position + offset_in_region, size_bytes)

    def pread(self, offset_in_region: int, size_bytes: int) -> bytes:
        """Read bytes of the region; fewer than requested only at its end."""
        size_bytes = min(size_bytes, self.size_bytes - offset_in_region)
        return self._whole_file().pread(size_bytes, self.position + offset_in_region)

    def peek(self) -> Buffer | None:
        """Return all bytes, or None if reading them would wait for a disk or the file is too short now. [loop]"""
        data = self._whole_file().pread_nowait(self.size_bytes, self.position)
        return data if data is not None and len(data) == self.size_bytes else None

    def is_resident(self, offset_in_region: int, size_bytes: int) -> bool:
        """Return whether the page cache holds a piece of the region. [loop]"""
        return self._open_file().is_resident(self.position + offset_in_region, size_bytes)

    def load(self, offset_in_region: int, size_bytes: int) -> None:
        """Load a piece of the region into the page cache. [disk]"""
        self._open_file().load(self.position + offset_in_region, size_bytes)

    def share(self) -> FileRegion:
        """Return another region of the same bytes, to be released by itself."""
        if self._file is None or not self._file.acquire():
            raise ValueError("this region was released")
        shared = FileRegion(self._file, self.position, self.size_bytes)
        shared._cuts_before = self._cuts_before
        return shared

    def release(self) -> None:
        """Release the file; a second call does nothing."""
        file, self._file = self._file, None
        if file is not None:
            file.release()


class CachedSegment(Protocol):
    """An entry of the cache, with an open file and indexes."""

    def unload(self) -> None:
        """Close the file and drop the indexes."""

    def close_file(self) -> None:
        """Close the file alone."""


class SegmentCache:
    """Bounds the open segments of any number of logs: sealed ones with their indexes, active ones with the file alone.

    `lock` guards the open files of segments. It is never held during a file operation, so the reactor thread and the
    threads of directories can share a cache.
    """

    __slots__ = ("_active", "_capacity", "_loaded", "_most_active", "lock")

    def __init__(self, capacity: int = 256, most_active: int = 1 << 20) -> None:
        self._capacity = capacity
        self._most_active = most_active
        self._loaded: OrderedDict[CachedSegment, None] = OrderedDict()
        self._active: OrderedDict[CachedSegment, None] = OrderedDict()
        self.lock = Lock()

    @classmethod
    def for_open_files(cls, open_files: int) -> SegmentCache:
        """Return a cache for a process with a limit of open files, three eighths of which stay free for connections."""
        return cls(min(256, open_files // 8), open_files // 2)

    def __len__(self) -> int:
        return len(self._loaded)

    def touch(self, segment: CachedSegment) -> None:
        """Note a use of a loaded segment; if too many are loaded, unload the one least recently used."""
        with self.lock:
            self._loaded[segment] = None
            self._loaded.move_to_end(segment)
            oldest = self._loaded.popitem(last=False)[0] if len(self._loaded) > self._capacity else None
        if oldest is not None:
            oldest.unload()

    def note_opened(self, segment: CachedSegment) -> None:
        """Note that an active segment's file was opened; if too many are open, close the one open for longest. [loop]

        A closed file that is written to is opened again. That is rare enough to keep no record of uses.
        """
        with self.lock:
            self._active[segment] = None
            oldest = self._active.popitem(last=False)[0] if len(self._active) > self._most_active else None
        if oldest is not None:
            oldest.close_file()

    def forget(self, segment: CachedSegment) -> None:
        """Stop counting a segment."""
        with self.lock:
            self._loaded.pop(segment, None)
            self._active.pop(segment, None)
