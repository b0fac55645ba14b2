"""Open log files that are shared: counted, bounded in number, and handed out as regions to send."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Protocol

from kafkacompat.storage.files.filesystem import File
from kafkacompat.wire.primitives import Buffer


class SegmentFile:
    """A segment's open log file, closed when the last of its users has released it; `with` releases it, too."""

    __slots__ = ("_lock", "_users", "cuts", "file")

    def __init__(self, file: File, cuts: Sequence[int] = ()) -> None:
        self.file = file
        self.cuts = cuts
        """Where the segment was cut, in the order in which it was: what is written behind a cut is something else."""
        self._users = 1
        self._lock = Lock()

    def acquire(self) -> bool:
        """Count one more user; False when the file was closed already."""
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
        """Count one user less; the last one closes the file."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self.file.close()


class RegionGoneError(OSError):
    """A file was cut within a region of it that was promised to a client: the connection has to be closed."""


class FileRegion:
    """Bytes of a log file to be sent as they are.

    Keeps the file open until `release`, also when the segment is deleted or replaced meanwhile. Once the file was cut
    within the region RegionGoneError is raised in place of its bytes, also when the log has grown again since.
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

    def fileno(self) -> int:
        """The descriptor to give to sendfile, with `position` and `size_bytes`."""
        return self._whole_file().fileno()

    def pread(self, offset_in_region: int, size_bytes: int) -> bytes:
        """Bytes of the region; fewer than asked only at its end."""
        size_bytes = min(size_bytes, self.size_bytes - offset_in_region)
        return self._whole_file().pread(size_bytes, self.position + offset_in_region)

    def peek(self) -> Buffer | None:
        """All of its bytes, unless reading them would wait for a disk or the file has become too short. [loop]"""
        data = self._whole_file().pread_nowait(self.size_bytes, self.position)
        return data if data is not None and len(data) == self.size_bytes else None

    def is_resident(self, offset_in_region: int, size_bytes: int) -> bool:
        """Whether sending a piece of it would wait for no disk. [loop]"""
        return self._open_file().is_resident(self.position + offset_in_region, size_bytes)

    def load(self, offset_in_region: int, size_bytes: int) -> None:
        """Bring a piece of it into the page cache. [disk]"""
        self._open_file().load(self.position + offset_in_region, size_bytes)

    def share(self) -> FileRegion:
        """The same bytes once more, to be released by themselves."""
        if self._file is None or not self._file.acquire():
            raise ValueError("this region was released")
        shared = FileRegion(self._file, self.position, self.size_bytes)
        shared._cuts_before = self._cuts_before
        return shared

    def release(self) -> None:
        """Give the file back; a second call does nothing."""
        file, self._file = self._file, None
        if file is not None:
            file.release()


class Unloadable(Protocol):
    """What a cache holds: something that can give back its open file and its indexes."""

    def unload(self) -> None:
        """Give them back."""

    def close_file(self) -> None:
        """Give back the file alone."""


class SegmentCache:
    """Bounds how many segments, of any number of logs, are open: sealed ones with their indexes, active ones with their file alone.

    `lock` guards the fields that say whether a segment is loaded; it is never held during a file operation,
    so the reactor thread and a directory's own thread may share a cache.
    """

    __slots__ = ("_active", "_capacity", "_loaded", "_most_active", "lock")

    def __init__(self, capacity: int = 256, most_active: int = 1 << 20) -> None:
        self._capacity = capacity
        self._most_active = most_active
        self._loaded: OrderedDict[Unloadable, None] = OrderedDict()
        self._active: OrderedDict[Unloadable, None] = OrderedDict()
        self.lock = Lock()

    @classmethod
    def within(cls, open_files: int) -> SegmentCache:
        """One for a process that may have so many files open: three eighths of them are left for clients and all else."""
        return cls(min(256, open_files // 8), open_files // 2)

    def __len__(self) -> int:
        return len(self._loaded)

    def touch(self, segment: Unloadable) -> None:
        """Note that a loaded segment was used; the one unused for longest is unloaded when there are too many."""
        with self.lock:
            self._loaded[segment] = None
            self._loaded.move_to_end(segment)
            oldest = self._loaded.popitem(last=False)[0] if len(self._loaded) > self._capacity else None
        if oldest is not None:
            oldest.unload()

    def opened(self, segment: Unloadable) -> None:
        """Note that an active segment's file was opened; with too many, the one open for longest is closed. [loop]

        One that is still written to is opened again, once in as many times as there may be open: that needs no book about
        who is used.
        """
        with self.lock:
            self._active[segment] = None
            oldest = self._active.popitem(last=False)[0] if len(self._active) > self._most_active else None
        if oldest is not None:
            oldest.close_file()

    def forget(self, segment: Unloadable) -> None:
        """Count a segment no longer."""
        with self.lock:
            self._loaded.pop(segment, None)
            self._active.pop(segment, None)
