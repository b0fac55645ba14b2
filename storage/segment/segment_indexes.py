"""The two indexes of one segment: in memory while it grows or is read, in their files once it is sealed."""

from __future__ import annotations

from typing import NamedTuple

from kafkacompat.storage.segment.index_files import read_indexes, write_indexes
from kafkacompat.storage.segment.indexes import OffsetIndex, TimeIndex
from kafkacompat.storage.segment.segment_files import SegmentFiles


class Indexes(NamedTuple):
    """Both indexes of a segment. They are replaced together, so that any thread sees two that match."""

    offset_index: OffsetIndex
    time_index: TimeIndex

    @classmethod
    def empty(cls, base_offset: int) -> Indexes:
        """Indexes without entries."""
        return cls(OffsetIndex(base_offset), TimeIndex(base_offset))

    @property
    def entry_counts(self) -> tuple[int, int]:
        """How many entries the offset index and the time index have."""
        return len(self.offset_index.positions), len(self.time_index.timestamps)

    def truncate_to(self, offset: int) -> None:
        """Drop every entry for `offset` or a later one."""
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)


class SegmentIndexes:
    """Loads, replaces and writes the indexes of a segment, and remembers what its files hold."""

    __slots__ = ("_files", "_written_entries", "loaded")

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        self._written_entries: tuple[int, int] | None = None
        self.loaded: Indexes | None = None
        """None while only the files hold them."""

    def replace(self, indexes: Indexes, *, are_written: bool = False) -> None:
        """Use other indexes; `are_written`: the files hold these."""
        self.loaded = indexes
        self._written_entries = indexes.entry_counts if are_written else None

    def read(self, base_offset: int, size_bytes: int) -> Indexes:
        """Read both files of a segment of that size. Raises CorruptIndexError or FileNotFoundError. [disk]"""
        indexes = Indexes(*read_indexes(self._files.system, self._files.path, base_offset, size_bytes))
        self.replace(indexes, are_written=True)
        return indexes

    def write(self, indexes: Indexes) -> None:
        """Write both files and sync them. [disk]"""
        write_indexes(self._files.system, self._files.path, indexes)
        self._written_entries = indexes.entry_counts

    def note_changed(self) -> None:
        """The files may not hold what is in memory any more."""
        self._written_entries = None

    def are_written(self, indexes: Indexes) -> bool:
        """Whether the files are known to hold these."""
        return indexes.entry_counts == self._written_entries

    def unload(self) -> None:
        """Drop them from memory; they are read again when needed."""
        self.loaded = None
