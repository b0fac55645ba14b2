"""The files of one segment on the disk: their names, and what makes, renames and removes them."""

from __future__ import annotations

import os

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.index_files import INDEX_SUFFIX, TIME_INDEX_SUFFIX

LOG_SUFFIX = ".log"
TXN_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
REMOVED_SUFFIX = ".removed"
"""Ends the names of files that were taken out of a log and are kept for a person to inspect."""
SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX)
ALL_SUFFIXES = (*SUFFIXES, TXN_INDEX_SUFFIX)


def choose_removed_name(files: Files, path: str) -> str:
    """Return a free name for a file that is taken out of a log, made from its own; files taken out earlier stay."""
    name, number = path + REMOVED_SUFFIX, 0
    while files.exists(name):
        number += 1
        name = f"{path}.{number}{REMOVED_SUFFIX}"
    return name


def find_last_segment(files: Files, folder: str) -> tuple[int, int]:
    """Return (base offset, bytes) of a partition's last segment; (-1, 0) without segments."""
    bases = list_segment_bases(files, folder)
    return (bases[-1], files.size(log_file_path(folder, bases[-1]))) if bases else (-1, 0)


def list_segment_bases(files: Files, folder: str) -> list[int]:
    """Return the base offsets of the segments with a log file, ascending."""
    stems = (name.removesuffix(LOG_SUFFIX) for name in files.list(folder) if name.endswith(LOG_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def has_segment_files(files: Files, folder: str) -> bool:
    """Return whether a folder has any file of a segment; after a crash that may be an index alone."""
    stems = (name.removesuffix(suffix) for name in files.list(folder) for suffix in SUFFIXES if name.endswith(suffix))
    return any(stem.isdigit() for stem in stems)


def log_file_path(folder: str, base_offset: int) -> str:
    """Return the path of a segment's log file."""
    return os.path.join(folder, f"{base_offset:020d}{LOG_SUFFIX}")


class SegmentFiles:
    """The up to four files of a segment: the log file, its two indexes and its transaction index.

    Their names are the base offset in twenty digits, the file's suffix, and an ending that all four share: empty for a
    segment of the log, DELETED_SUFFIX, CLEANED_SUFFIX or SWAP_SUFFIX otherwise.
    """

    __slots__ = ("_base_offset", "_directory", "_ending", "system")

    def __init__(self, system: Files, directory: str, base_offset: int, ending: str = "") -> None:
        self.system = system
        """The file system that the files are in."""
        self._directory = directory
        self._base_offset = base_offset
        self._ending = ending

    def path(self, suffix: str) -> str:
        """Return the path of the file with a suffix."""
        return os.path.join(self._directory, f"{self._base_offset:020d}{suffix}{self._ending}")

    def note_moved(self, directory: str) -> None:
        """Go on with the files in a folder that was renamed to *directory*."""
        self._directory = directory

    def create(self) -> None:
        """Make the three files, empty; the log file last, without which the others count for nothing. [disk]"""
        for suffix in reversed(SUFFIXES):
            file = self.system.open(self.path(suffix), create=True)
            try:
                file.truncate(0)
            finally:
                file.close()

    def rename(self, ending: str) -> None:
        """Give the files another ending, the log file first. [disk]"""
        for suffix in ALL_SUFFIXES:
            self.rename_one(suffix, ending)
        self._ending = ending

    def rename_one(self, suffix: str, ending: str) -> None:
        """Give one of the files, if it exists, another ending; `rename` has to follow. [disk]"""
        path = self.path(suffix)
        if self.system.exists(path):
            self.system.rename(path, path.removesuffix(self._ending) + ending)

    def remove(self) -> None:
        """Remove the files, the log file first: without it the others count for nothing. [disk]"""
        for suffix in ALL_SUFFIXES:
            if self.system.exists(self.path(suffix)):
                self.system.remove(self.path(suffix))
