"""The files of one segment: their names, and the log file while it is open."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable

from kafkacompat.storage.files.filesystem import File, Files
from kafkacompat.storage.segment.corruption import BadBatch
from kafkacompat.storage.segment.index_files import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafkacompat.storage.segment.lookup import ColdDataError
from kafkacompat.storage.segment.segment_file import SegmentCache, SegmentFile

log = logging.getLogger(__name__)

LOG_SUFFIX = ".log"
TXN_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
REMOVED_SUFFIX = ".removed"
"""Of what was taken out of a log and is kept for whoever wants to look at it."""
SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX)
ALL_SUFFIXES = (*SUFFIXES, TXN_INDEX_SUFFIX)


class TornSegmentError(OSError):
    """A write failed half-way and could not be taken back: the segment must not be used any more."""


def removed_name(files: Files, path: str) -> str:
    """A name for what is taken out of a log, from a file's own; what was taken out before it stays."""
    name, number = path + REMOVED_SUFFIX, 0
    while files.exists(name):
        number += 1
        name = f"{path}.{number}{REMOVED_SUFFIX}"
    return name


class SegmentFiles:
    """What a segment has on the disk. A sealed one's log file is opened when needed and closed by the cache."""

    __slots__ = (
        "_cache",
        "_cuts",
        "_directory",
        "_ending",
        "_file",
        "_files",
        "base_offset",
        "corrupt",
        "modified_ms",
        "sealed",
        "size_bytes",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, cache: SegmentCache, ending: str) -> None:
        self._files = files
        self._directory = directory
        self._cache = cache
        self._file: SegmentFile | None = None
        self._cuts: list[int] = []
        self._ending = ending
        self.base_offset = base_offset
        self.corrupt: tuple[BadBatch, ...] = ()
        """Batches that are known to be damaged, by position. Replaced as a whole, so any thread may look."""
        self.size_bytes = 0
        """Length of the log file as far as it is written."""
        self.modified_ms = -1
        """Time of the last write."""
        self.sealed = True

    def __repr__(self) -> str:
        return f"Segment(base_offset={self.base_offset}, size_bytes={self.size_bytes}, sealed={self.sealed})"

    def path(self, suffix: str) -> str:
        """Name of one of the segment's files."""
        return os.path.join(self._directory, f"{self.base_offset:020d}{suffix}{self._ending}")

    def remember_corrupt(self, found: Iterable[BadBatch]) -> None:
        """Note damaged batches: reads of them are refused from now on. Each is told of once. [any thread]"""
        known = {bad.position: bad for bad in self.corrupt}
        for bad in found:
            if bad.position not in known:
                place = self.path(LOG_SUFFIX), bad.position, bad.end - 1, bad.first_offset, bad.last_offset
                log.error("%s is damaged: bytes %d to %d, offsets %d to %d, are answered with CORRUPT_MESSAGE", *place)
            known[bad.position] = bad
        self.corrupt = tuple(sorted(known.values()))

    def relocate(self, directory: str) -> None:
        """Note that the folder has another name now."""
        self._directory = directory

    def measure(self) -> None:
        """Take size and time of the log file from the file system. [disk]"""
        self.size_bytes = self._files.size(self.path(LOG_SUFFIX))
        self.modified_ms = self._files.modified_ms(self.path(LOG_SUFFIX))

    def make_files(self) -> None:
        """Make the three files, empty; the log file last, without which the others count for nothing. [disk]"""
        for suffix in reversed(SUFFIXES):
            file = self._files.open(self.path(suffix), create=True)
            try:
                file.truncate(0)
            finally:
                file.close()

    def pin(self, *, may_block: bool = True) -> SegmentFile:
        """The open log file, with one more use counted, which the caller has to release.

        Raises ColdDataError when that of a sealed segment would have to be opened and `may_block` is False.
        """
        file = self._file
        if file is None or not file.acquire():
            if not self.sealed:
                return self._pin_active(keep=not may_block)
            if not may_block:
                raise ColdDataError
            file = self._open()
        if self.sealed:
            self._cache.touch(self)
        return file

    def _pin_active(self, *, keep: bool) -> SegmentFile:
        """Open the file of the active segment, for this use alone or to `keep` it open.

        Kept open is what the reactor thread opened, and only that thread closes it again: an append counts no use. Opening
        costs it less than the write or the read that follows, and waits for a disk no more often.
        """
        if not keep:
            return SegmentFile(self._files.open(self.path(LOG_SUFFIX)), self._cuts)
        file = self._open()
        self._cache.opened(self)
        return file

    def _active_file(self) -> File:
        if self._file is None:
            self._pin_active(keep=True).release()
        assert self._file is not None
        return self._file.file

    def _open(self) -> SegmentFile:
        opened = SegmentFile(self._files.open(self.path(LOG_SUFFIX)), self._cuts)
        with self._cache.lock:
            file = self._file
            if file is None or not file.acquire():
                file = self._file = opened
                opened.acquire()
        if file is not opened:
            opened.release()
        return file

    def unload(self) -> None:
        """Give back everything that is opened again when needed."""
        self.close_file()

    def close_file(self) -> None:
        """Give back the open file; it is opened again when needed."""
        with self._cache.lock:
            file, self._file = self._file, None
        if file is not None:
            file.release()

    def sync(self) -> None:
        """Put the log file's contents on the disk. [disk]"""
        file = self.pin()
        try:
            file.file.sync()
        finally:
            file.release()

    def write_again(self, position: int) -> None:
        """Put the log file's contents from `position` on on the disk, whatever an earlier sync made of them. [disk]"""
        path = self.path(LOG_SUFFIX)
        self._files.write_again(path, position)
        self.sync()
        self._files.set_modified_ms(path, self.modified_ms)

    def rename(self, ending: str) -> None:
        """Give the files another ending behind their suffixes, the log file first. [disk]"""
        for suffix in ALL_SUFFIXES:
            self.rename_one(suffix, ending)
        self._ending = ending

    def rename_one(self, suffix: str, ending: str) -> None:
        """Give one of the files another ending, if it is there; `rename` has to follow. [disk]"""
        path = self.path(suffix)
        if self._files.exists(path):
            self._files.rename(path, path.removesuffix(self._ending) + ending)

    def remove_files(self) -> None:
        """Remove the segment from the disk, the log file first: without it the others count for nothing. [disk]"""
        for suffix in ALL_SUFFIXES:
            if self._files.exists(self.path(suffix)):
                self._files.remove(self.path(suffix))
