"""Cleaning a partition's folder of the files that an interrupted deletion, compaction or write has left."""

from __future__ import annotations

import os

from kafkacompat.storage.files.checkpoints import TEMPORARY_SUFFIX
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.corruption import scan_sound_headers
from kafkacompat.storage.segment.segment_files import (
    ALL_SUFFIXES,
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
)


def clean_folder(files: Files, directory: str) -> list[int]:
    """Complete or undo interrupted operations; returns the base offsets of the segments, ascending. [disk]

    Remove files of deletions and incomplete files, and index files without a log file. Complete the swap of a complete
    compacted segment (.swap).
    """
    folder = _Folder(files, directory)
    folder.remove_ending(DELETED_SUFFIX)
    folder.remove_ending(TEMPORARY_SUFFIX)
    folder.drop_incomplete_swaps()
    # The files that show which swaps were incomplete go only after these are gone for good.
    folder.sync()
    folder.remove_ending(CLEANED_SUFFIX)
    folder.complete_swaps()
    bases = folder.bases()
    folder.remove_orphans(set(bases))
    folder.sync()
    return bases


class _Folder:
    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._all_names = files.list(directory)
        self._changed = False

    def sync(self) -> None:
        """Sync the folder if its names have changed."""
        if self._changed:
            self._files.sync_directory(self._directory)
            self._changed = False

    def _names(self, suffix: str) -> list[str]:
        return [name for name in self._all_names if name.endswith(suffix)]

    def _remove(self, name: str) -> None:
        self._files.remove(os.path.join(self._directory, name))
        self._all_names.remove(name)
        self._changed = True

    def _rename(self, old: str, new: str) -> None:
        self._files.rename(os.path.join(self._directory, old), os.path.join(self._directory, new))
        self._all_names.remove(old)
        self._all_names.append(new)
        self._changed = True

    def remove_ending(self, suffix: str) -> None:
        for name in self._names(suffix):
            self._remove(name)

    def bases(self) -> list[int]:
        stems = (name.removesuffix(LOG_SUFFIX) for name in self._names(LOG_SUFFIX))
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def drop_incomplete_swaps(self) -> None:
        """Remove .swap files at or after the first .cleaned file: their segment was incomplete."""
        cleaned = [_parse_base_offset(name) for name in self._names(CLEANED_SUFFIX)]
        for name in self._names(SWAP_SUFFIX):
            if cleaned and _parse_base_offset(name) >= min(cleaned):
                self._remove(name)

    def complete_swaps(self) -> None:
        swaps = self._names(SWAP_SUFFIX)
        logs = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
        if logs:
            start, end = min(map(_parse_base_offset, logs)), max(map(self._end_offset, logs))
            for suffix in ALL_SUFFIXES:
                for name in self._names(suffix):
                    if start <= _parse_base_offset(name) < end:
                        self._remove(name)
        # Each step is synced before the next. With parts of two steps the log would hold offsets twice, or take an index
        # of the new segment for that of a replaced one.
        for names in (logs, [name for name in swaps if name not in logs]):
            self.sync()
            for name in names:
                self._rename(name, name.removesuffix(SWAP_SUFFIX))

    def _end_offset(self, name: str) -> int:
        """Return the offset after the last sound batch: by a rotten header, segments would be removed without a replacement."""
        file, end_offset = self._files.open(os.path.join(self._directory, name)), _parse_base_offset(name)
        try:
            for _, header in scan_sound_headers(file, file.size(), end_offset):
                end_offset = header.last_offset + 1
        finally:
            file.close()
        return end_offset

    def remove_orphans(self, bases: set[int]) -> None:
        for suffix in ALL_SUFFIXES:
            for name in self._names(suffix):
                if _parse_base_offset(name) not in bases:
                    self._remove(name)


def _parse_base_offset(name: str) -> int:
    stem = name.split(".", 1)[0]
    return int(stem) if stem.isdigit() else -1
