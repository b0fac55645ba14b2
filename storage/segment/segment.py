"""One segment of a partition's log: a file of record batches and its two sparse indexes.

Format: docs/format/segment.md. A segment is either *active* (the last one: it grows, its indexes live in
memory) or *sealed* (it never changes; its file and indexes are opened when read and given back when the
`SegmentCache` needs the room).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from kafkacompat.storage.files.filesystem import File, Files
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.segment.corruption import CorruptDataError, sound_headers, spans
from kafkacompat.storage.segment.index_files import read_indexes, read_last_timestamp, write_indexes
from kafkacompat.storage.segment.indexes import REBUILD_INTERVAL_BYTES, CorruptIndexError, OffsetIndex, TimeIndex
from kafkacompat.storage.segment.lookup import BatchPlace, ColdDataError, DamagedError, find_batch, scan_headers
from kafkacompat.storage.segment.segment_file import FileRegion, SegmentCache, SegmentFile
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX, TornSegmentError
from kafkacompat.storage.segment.segment_transactions import SegmentTransactions
from kafkacompat.wire.primitives import Buffer

__all__ = ["FileRegion", "Segment", "TornSegmentError"]


class Segment(SegmentTransactions):
    """One segment. Only the log that owns it writes to it, and only while it is the active one."""

    __slots__ = (
        "_offset_index",
        "_time_index",
        "_unindexed_bytes",
        "_written_entries",
        "created_ms",
        "first_timestamp",
        "max_timestamp",
        "offset_of_max_timestamp",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, cache: SegmentCache, ending: str = "") -> None:
        super().__init__(files, directory, base_offset, cache, ending)
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._unindexed_bytes = 0
        self._written_entries: tuple[int, int] | None = None
        self.created_ms = -1
        """When the segment became this log's active one, or took its first batch; -1 before."""
        self.first_timestamp = -1
        """The first batch's maximum timestamp; segment.ms counts from it."""
        self.max_timestamp = -1
        self.offset_of_max_timestamp = base_offset
        """Last offset of the first batch that has the segment's maximum timestamp."""

    @classmethod
    def create(cls, files: Files, directory: str, base_offset: int, cache: SegmentCache, ending: str = "") -> Segment:
        """Make the three files of a new, empty, active segment. [disk]"""
        segment = cls(files, directory, base_offset, cache, ending)
        segment.make_files()
        segment.start_over()
        segment._written_entries = (0, 0)
        return segment

    @classmethod
    def load(cls, files: Files, directory: str, base_offset: int, cache: SegmentCache, ending: str = "") -> Segment:
        """Describe a segment found on the disk, as sealed, trusting its indexes. [disk]

        Raises FileNotFoundError or CorruptIndexError when the indexes are not to be trusted.
        """
        segment = cls(files, directory, base_offset, cache, ending)
        segment.measure()
        segment.max_timestamp, segment.offset_of_max_timestamp = read_last_timestamp(files, segment.path, base_offset)
        return segment

    @property
    def latest_ms(self) -> int:
        """The largest timestamp, or the time of the last write where no record has one; retention.ms counts from it."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.modified_ms

    # --- indexes ---

    def unload(self) -> None:
        """Give back the open file and the indexes; they are opened again when needed."""
        with self._cache.lock:
            self._offset_index = self._time_index = None
        super().unload()

    def indexes(self, *, may_block: bool = True) -> tuple[OffsetIndex, TimeIndex]:
        """Both indexes; ColdDataError when they would have to be read and `may_block` is False."""
        offset_index, time_index = self._offset_index, self._time_index
        if offset_index is None or time_index is None:
            if not may_block:
                raise ColdDataError
            offset_index, time_index = self._load_indexes()
            with self._cache.lock:
                self._offset_index, self._time_index = offset_index, time_index
            self._cache.touch(self)
        return offset_index, time_index

    @property
    def index_entries(self) -> tuple[int, int]:
        """How many entries the offset index and the time index of the active segment have."""
        offset_index, time_index = self._offset_index, self._time_index
        if offset_index is None or time_index is None:
            raise ValueError(f"{self!r} is not the active one")
        return len(offset_index.positions), len(time_index.timestamps)

    @property
    def indexes_changed(self) -> bool:
        """Whether the index files of the active segment are not known to hold what they should. [disk]"""
        return self.index_entries != self._written_entries

    def _load_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        try:
            offset_index, time_index = read_indexes(self._files, self.path, self.base_offset, self.size_bytes)
        except (CorruptIndexError, FileNotFoundError):
            return self._indexes_from_log()
        self._written_entries = len(offset_index), len(time_index)
        return offset_index, time_index

    def _indexes_from_log(self) -> tuple[OffsetIndex, TimeIndex]:
        scratch = Segment(self._files, self._directory, self.base_offset, self._cache)
        scratch.start_over()
        with self.pin() as file:
            for position, each in sound_headers(file.file, self.size_bytes, self.base_offset):
                scratch.size_bytes = position
                scratch.index_batch(each.size_bytes, each.last_offset, each.latest_timestamp, REBUILD_INTERVAL_BYTES)
        scratch.finish()
        return scratch.indexes()

    def index_again(self) -> None:
        """Build the indexes from the log file, because those that there are do not lead to its batches. [disk]

        Entries of what is appended to the active segment meanwhile are left out: they only make finding faster.
        """
        indexes = self._indexes_from_log()
        with self._cache.lock:
            self._offset_index, self._time_index = indexes
        self._written_entries = None
        if self.sealed:
            self.write_indexes()

    def start_over(self) -> None:
        """Become active with empty indexes; the caller indexes what the file holds."""
        self.sealed = False
        self._cache.forget(self)
        self._offset_index, self._time_index = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        self._unindexed_bytes = self.size_bytes = 0
        self._written_entries = None
        self.start_without_aborted()
        self.created_ms = self.first_timestamp = self.max_timestamp = -1
        self.offset_of_max_timestamp = self.base_offset

    def activate(self, now_ms: int) -> None:
        """Become the active segment of a log that was opened or truncated, keeping the indexes. [disk]"""
        self.indexes()
        self.aborted()
        self.close_file()
        self.sealed = False
        self._cache.forget(self)
        self.created_ms = now_ms
        self.first_timestamp = self._first_timestamp()

    def learn_first_timestamp(self) -> None:
        """Look up the first batch's maximum timestamp, 0 where it has none. [disk]"""
        self.first_timestamp = max(0, self._first_timestamp())

    def _first_timestamp(self) -> int:
        with self.pin() as file:
            return next((each.max_timestamp for _, each in scan_headers(file.file, 0, self.size_bytes)), -1)

    def take_over(self, other: Segment) -> None:
        """Become active with the indexes of *other*, whose batches are in this segment's file already. [disk]"""
        self.start_over()
        self.take_aborted_of(other)
        self._offset_index, self._time_index = deepcopy(other.indexes())
        self._unindexed_bytes = other._unindexed_bytes
        self.size_bytes, self.modified_ms, self.created_ms = other.size_bytes, other.modified_ms, other.created_ms
        self.first_timestamp, self.max_timestamp = other.first_timestamp, other.max_timestamp
        self.offset_of_max_timestamp = other.offset_of_max_timestamp

    # --- writing (the active segment) ---

    def append(
        self, parts: Sequence[Buffer], size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int, interval: int
    ) -> None:
        """Write one batch of `size_bytes` at the end and index it. [loop]

        On OSError, or when memory is short, nothing has changed: the file was cut back to its previous end.
        TornSegmentError says that even this failed.
        """
        file = self._active_file()
        try:
            file.append(parts, size_bytes)
        except Exception as error:
            self._cut_back(file, error)
            raise
        if self.size_bytes == 0:
            self.created_ms = now_ms
            self.first_timestamp = max_timestamp
        self.index_batch(size_bytes, last_offset, max_timestamp, interval)
        self.modified_ms = now_ms

    def _cut_back(self, file: File, error: Exception) -> None:
        try:
            file.truncate(self.size_bytes)
        except OSError as second:
            raise TornSegmentError(
                second.errno, f"{describe_error(error)}; cutting the file back failed: {describe_error(second)}"
            ) from error

    def index_batch(self, size_bytes: int, last_offset: int, max_timestamp: int, interval: int) -> None:
        """Count a batch that lies at the end: Kafka's rule gives one an entry every `interval` bytes."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self._unindexed_bytes > interval:
            offset_index, time_index = self.indexes()
            offset_index.append(last_offset, self.size_bytes)
            time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
            self._unindexed_bytes = 0
        self._unindexed_bytes += size_bytes
        self.size_bytes += size_bytes

    def finish(self) -> None:
        """Take no more batches: the largest timestamp enters the time index. [loop]"""
        self.indexes()[1].maybe_append(self.max_timestamp, self.offset_of_max_timestamp)

    def seal(self) -> None:
        """Put everything on the disk and let the cache decide how long file and indexes stay open. [disk]"""
        self.finish()  # again: the indexes may have been built anew meanwhile
        self.sync()
        self.write_aborted()
        self.write_indexes()
        self.sealed = True
        self._cache.forget(self)
        self._cache.touch(self)

    def write_indexes(self) -> None:
        """Put both indexes on the disk. [disk]"""
        offset_index, time_index = self.indexes()
        write_indexes(self._files, self.path, (offset_index, time_index))
        self._written_entries = len(offset_index), len(time_index)

    # --- finding and cutting ---

    def find(self, offset: int, end: int, file: SegmentFile, *, may_block: bool = True) -> BatchPlace | None:
        """The batch that holds `offset`, or the next one before position `end`.

        Raises CorruptDataError where a damaged batch is in the place of it or on the way to it.
        """
        position = self.indexes(may_block=may_block)[0].lookup(offset)
        try:
            if position >= end > 0:
                raise DamagedError(f"the index leads to byte {position}, where it has ended")
            for start, stop, bad in spans(self.corrupt, position, end):
                place = find_batch(file.file, offset, start, stop, may_block=may_block) if start < stop else None
                if place is not None:
                    if place.base_offset > offset and place.position == position > 0:
                        raise DamagedError(f"the index leads behind offset {offset}")
                    return place
                if bad is not None and offset <= bad.last_offset:
                    raise CorruptDataError(f"{self.path(LOG_SUFFIX)} is damaged at byte {bad.position}", bad)
        except DamagedError as error:
            raise CorruptDataError(f"{self.path(LOG_SUFFIX)} is damaged: {error}", None) from error
        return None

    def cut(self, offset: int) -> int:
        """Drop the batch that holds `offset` and all after it, and become active; returns the offset reached. [disk]"""
        self.activate(self.modified_ms)
        offset_index, time_index = self.indexes()
        with self.pin() as file:
            place = self._find_or_damage(offset, file)
            if place is not None:
                self.size_bytes, offset = place.position, min(offset, place.base_offset)
                self.corrupt = tuple(bad for bad in self.corrupt if bad.end <= self.size_bytes)
                # First this: regions that reach behind it are not sent any more.
                self._cuts.append(self.size_bytes)
                file.file.truncate(self.size_bytes)
                file.file.sync()
            offset_index.truncate_to(offset)
            time_index.truncate_to(offset)
            self._measure_timestamps(file.file)
        self._unindexed_bytes, self._written_entries = 0, None
        return offset

    def _find_or_damage(self, offset: int, file: SegmentFile) -> BatchPlace | None:
        try:
            return self.find(offset, self.size_bytes, file)
        except CorruptDataError as error:
            if error.bad is None:
                raise
            return BatchPlace(error.bad.position, error.bad.size_bytes, error.bad.first_offset)

    def _measure_timestamps(self, file: File) -> None:
        offset_index, time_index = self.indexes()
        self.max_timestamp, self.offset_of_max_timestamp = time_index.last()
        start = offset_index.lookup(self.offset_of_max_timestamp)
        for _, header in scan_headers(file, start, self.size_bytes):
            if header.latest_timestamp > self.max_timestamp:
                self.max_timestamp, self.offset_of_max_timestamp = header.latest_timestamp, header.last_offset
        if self.size_bytes == 0:
            self.first_timestamp = -1
