"""One segment of a partition's log: a file of record batches and its two sparse indexes.

Format: docs/format/segment.md. A segment is either *active* or *sealed*. The active one is the last of its log: it
grows, and its indexes are in memory. A sealed one never changes: a read opens its file and indexes, and the
`SegmentCache` closes them when it needs the room.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Sequence
from copy import deepcopy

from kafkacompat.storage.files.filesystem import File, Files
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.segment.aborted_transactions import AbortedTransactions
from kafkacompat.storage.segment.corruption import BadBatch, CorruptDataError, scan_sound_headers, split_at_damage
from kafkacompat.storage.segment.header_scan import BatchPlace, ColdDataError, DamagedError, find_batch, scan_headers
from kafkacompat.storage.segment.index_files import read_last_timestamp
from kafkacompat.storage.segment.indexes import REBUILD_INTERVAL_BYTES, CorruptIndexError
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX, SegmentFiles
from kafkacompat.storage.segment.segment_indexes import Indexes, SegmentIndexes
from kafkacompat.storage.segment.segment_transactions import SegmentTransactions
from kafkacompat.storage.segment.shared_files import SegmentCache, SegmentFile
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import BatchHeader

log = logging.getLogger(__name__)


class TornSegmentError(OSError):
    """A write failed half-way and could not be undone: the segment must not be used any more."""


class Segment:
    """One segment. Only the log that owns it writes to it, and only while it is active."""

    __slots__ = (
        "_cache",
        "_cuts",
        "_file",
        "_indexes",
        "_unindexed_bytes",
        "base_offset",
        "corrupt",
        "created_ms",
        "files",
        "first_timestamp",
        "max_timestamp",
        "modified_ms",
        "offset_of_max_timestamp",
        "sealed",
        "size_bytes",
        "transactions",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, cache: SegmentCache, ending: str = "") -> None:
        self.files = SegmentFiles(files, directory, base_offset, ending)
        self.transactions = SegmentTransactions(self.files)
        """The aborted transactions whose markers lie here; `aborted` loads them."""
        self._indexes = SegmentIndexes(self.files)
        self._cache = cache
        self._file: SegmentFile | None = None
        """The log file while it is open; the cache's lock guards it."""
        self._cuts: list[int] = []
        self._unindexed_bytes = 0
        self.base_offset = base_offset
        self.corrupt: tuple[BadBatch, ...] = ()
        """The known damaged batches, by position. The tuple is replaced as a whole, so any thread may read it."""
        self.size_bytes = 0
        """Length of the log file as far as it is written."""
        self.modified_ms = -1
        """Time of the last write."""
        self.sealed = True
        self.created_ms = -1
        """Time when the segment became active or received its first batch; -1 before."""
        self.first_timestamp = -1
        """The first batch's maximum timestamp; segment.ms counts from it."""
        self.max_timestamp = -1
        self.offset_of_max_timestamp = base_offset
        """Last offset of the first batch that has the segment's maximum timestamp."""

    @classmethod
    def create(cls, files: Files, directory: str, base_offset: int, cache: SegmentCache, ending: str = "") -> Segment:
        """Create the three files of a new, empty, active segment. [disk]"""
        segment = cls(files, directory, base_offset, cache, ending)
        segment.files.create()
        segment.start_empty()
        segment.transactions.replace(())  # a file of that name belongs to an earlier segment
        segment._indexes.replace(segment.indexes(), are_written=True)
        return segment

    @classmethod
    def load(cls, files: Files, directory: str, base_offset: int, cache: SegmentCache, ending: str = "") -> Segment:
        """Load a sealed segment from its files, trusting its indexes. [disk]

        Raises FileNotFoundError or CorruptIndexError if the indexes cannot be trusted.
        """
        segment = cls(files, directory, base_offset, cache, ending)
        segment.measure()
        segment.max_timestamp, segment.offset_of_max_timestamp = read_last_timestamp(
            files, segment.files.path, base_offset
        )
        return segment

    def __repr__(self) -> str:
        return f"Segment(base_offset={self.base_offset}, size_bytes={self.size_bytes}, sealed={self.sealed})"

    @property
    def latest_ms(self) -> int:
        """The largest timestamp, or the time of the last write if no record has one; retention.ms counts from it."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.modified_ms

    def measure(self) -> None:
        """Set `size_bytes` and `modified_ms` from the file system. [disk]"""
        self.size_bytes = self.files.system.size(self.files.path(LOG_SUFFIX))
        self.modified_ms = self.files.system.modified_ms(self.files.path(LOG_SUFFIX))

    def remember_corrupt(self, bad_batches: Iterable[BadBatch]) -> None:
        """Note damaged batches, and log each the first time: reads of them fail from now on. [any thread]"""
        known = {bad.position: bad for bad in self.corrupt}
        for bad in bad_batches:
            if bad.position not in known:
                place = self.files.path(LOG_SUFFIX), bad.position, bad.end - 1, bad.first_offset, bad.last_offset
                log.error(
                    "%s is damaged: bytes %d to %d, offsets %d to %d, where fetches fail with CORRUPT_MESSAGE", *place
                )
            known[bad.position] = bad
        self.corrupt = tuple(sorted(known.values()))

    # --- the open log file ---

    def pin(self, *, may_block: bool = True) -> SegmentFile:
        """Return the open log file, with one more use counted, which the caller releases.

        Raises ColdDataError if the file of a sealed segment is closed and `may_block` is False.
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

        Only the reactor thread keeps it open and closes it, because an append counts no use. Opening costs less than the
        write or the read that follows, and waits for a disk no more often.
        """
        if not keep:
            return SegmentFile(self.files.system.open(self.files.path(LOG_SUFFIX)), self._cuts)
        file = self._open()
        self._cache.note_opened(self)
        return file

    def _active_file(self) -> File:
        if self._file is None:
            self._pin_active(keep=True).release()
        assert self._file is not None
        return self._file.file

    def _open(self) -> SegmentFile:
        opened = SegmentFile(self.files.system.open(self.files.path(LOG_SUFFIX)), self._cuts)
        with self._cache.lock:
            file = self._file
            if file is None or not file.acquire():
                file = self._file = opened
                opened.acquire()
        if file is not opened:
            opened.release()
        return file

    def unload(self) -> None:
        """Close the file, and drop the indexes and a long list of aborted transactions; they are loaded again when needed."""
        self._indexes.unload()
        if self.sealed:
            self.transactions.unload()
        self.close_file()

    def close_file(self) -> None:
        """Close the file; it is opened again when needed."""
        with self._cache.lock:
            file, self._file = self._file, None
        if file is not None:
            file.release()

    def sync(self) -> None:
        """Sync the log file. [disk]"""
        file = self.pin()
        try:
            file.file.sync()
        finally:
            file.release()

    def write_again(self, position: int) -> None:
        """Write the log file from `position` on over itself and sync it, because an earlier sync may have failed. [disk]"""
        path = self.files.path(LOG_SUFFIX)
        self.files.system.write_again(path, position)
        self.sync()
        self.files.system.set_modified_ms(path, self.modified_ms)

    # --- aborted transactions ---

    def aborted(self, *, may_block: bool = True) -> AbortedTransactions:
        """Return all of them, read from the file if need be.

        Raises CorruptIndexError, and ColdDataError if `may_block` is False and they are not in memory.
        """
        aborted = self.transactions.loaded
        if aborted is None:
            if not may_block:
                raise ColdDataError
            aborted = self.transactions.load()
            if self.sealed:
                self._cache.touch(self)
        return aborted

    def has_readable_aborted(self) -> bool:
        """Return whether the transaction index file, if it exists, can be read. [disk]"""
        try:
            self.aborted()
        except CorruptIndexError:
            return False
        return True

    def collect_aborted(
        self, start: int, end: int, into: list[AbortedTransaction], *, may_block: bool, enough: int = sys.maxsize
    ) -> bool:
        """See AbortedTransactions.collect. Raises ColdDataError and CorruptIndexError as `aborted` does."""
        is_last = self.transactions.collect_by_bounds(end)
        return self.aborted(may_block=may_block).collect(start, end, into, enough) if is_last is None else is_last

    def truncate_aborted(self, offset: int) -> None:
        """Drop the transactions whose markers are at `offset` or later, where the log ends now. [disk]"""
        aborted = self.aborted()
        if aborted.truncate_to(offset):
            self.transactions.replace(aborted.since())

    # --- indexes ---

    def indexes(self, *, may_block: bool = True) -> Indexes:
        """Return both indexes. Raises ColdDataError if `may_block` is False and they are not in memory."""
        indexes = self._indexes.loaded
        if indexes is None:
            if not may_block:
                raise ColdDataError
            indexes = self._load_indexes()
            self._cache.touch(self)
        return indexes

    @property
    def index_entries(self) -> tuple[int, int]:
        """Numbers of entries of the active segment's offset index and time index."""
        indexes = self._indexes.loaded
        if indexes is None:
            raise ValueError(f"{self!r} is not the active one")
        return indexes.entry_counts

    @property
    def unindexed_bytes(self) -> int:
        """Bytes of the active segment from the last batch with an index entry on."""
        return self._unindexed_bytes

    @property
    def indexes_changed(self) -> bool:
        """Whether the active segment's index files may differ from the indexes in memory. [disk]"""
        return not self._indexes.are_written(self.indexes())

    def _load_indexes(self) -> Indexes:
        try:
            return self._indexes.read(self.base_offset, self.size_bytes)
        except (CorruptIndexError, FileNotFoundError):
            indexes = self._indexes_from_log()
            self._indexes.loaded = indexes
            return indexes

    def _indexes_from_log(self) -> Indexes:
        scratch = Segment(self.files.system, "", self.base_offset, self._cache)  # counts batches, has no files
        scratch.start_empty()
        with self.pin() as file:
            for position, header in scan_sound_headers(file.file, self.size_bytes, self.base_offset):
                scratch.size_bytes = position
                scratch.index_batch(
                    header.size_bytes, header.last_offset, header.latest_timestamp, REBUILD_INTERVAL_BYTES
                )
        scratch.finish_time_index()
        return scratch.indexes()

    def rebuild_indexes(self) -> None:
        """Rebuild the indexes from the log file, after they led to no batch. [disk]

        Batches that are appended meanwhile get no entries: these only make searches faster.
        """
        self._indexes.replace(self._indexes_from_log())
        if self.sealed:
            self.write_indexes()

    def start_empty(self) -> None:
        """Become active with empty indexes; the caller indexes the batches of the file."""
        self.sealed = False
        self._cache.forget(self)
        self._indexes.replace(Indexes.empty(self.base_offset))
        self.transactions.start_empty()
        self._unindexed_bytes = self.size_bytes = 0
        self.created_ms = self.first_timestamp = self.max_timestamp = -1
        self.offset_of_max_timestamp = self.base_offset

    def activate(self, now_ms: int) -> None:
        """Become the active segment of an opened or truncated log, keeping the indexes. [disk]"""
        self.indexes()
        self.aborted()
        self.close_file()
        self.sealed = False
        self._cache.forget(self)
        self.created_ms = now_ms
        self.first_timestamp = self._first_timestamp()

    def learn_first_timestamp(self) -> None:
        """Set `first_timestamp` to the first batch's maximum timestamp, 0 if it has none. [disk]"""
        self.first_timestamp = max(0, self._first_timestamp())

    def _first_timestamp(self) -> int:
        with self.pin() as file:
            return next((header.max_timestamp for _, header in scan_headers(file.file, 0, self.size_bytes)), -1)

    def adopt_indexes(self, other: Segment) -> None:
        """Become active with the indexes of `other`, whose batches this segment's file holds already. [disk]"""
        self.start_empty()
        self.transactions.adopt(other.aborted().since())
        self._indexes.replace(deepcopy(other.indexes()))
        self._unindexed_bytes = other._unindexed_bytes
        self.size_bytes, self.modified_ms, self.created_ms = other.size_bytes, other.modified_ms, other.created_ms
        self.first_timestamp, self.max_timestamp = other.first_timestamp, other.max_timestamp
        self.offset_of_max_timestamp = other.offset_of_max_timestamp

    # --- writing (the active segment) ---

    def append(
        self, parts: Sequence[Buffer], size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int, interval: int
    ) -> None:
        """Append one batch of `size_bytes` and index it. [loop]

        An OSError or a MemoryError changes nothing: the file is truncated to its previous end. If that fails too, the
        error is a TornSegmentError.
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

    def append_batches(self, data: Buffer, headers: Sequence[BatchHeader], now_ms: int, interval: int) -> None:
        """Append several batches by one write, `data` with these `headers`, and index them; fails as `append` does. [loop]"""
        file = self._active_file()
        try:
            file.append((data,), len(data))
        except Exception as error:
            self._cut_back(file, error)
            raise
        if self.size_bytes == 0:
            self.created_ms = now_ms
            self.first_timestamp = headers[0].max_timestamp
        for header in headers:
            self.index_batch(header.size_bytes, header.last_offset, header.latest_timestamp, interval)
        self.modified_ms = now_ms

    def _cut_back(self, file: File, error: Exception) -> None:
        try:
            file.truncate(self.size_bytes)
        except OSError as second:
            raise TornSegmentError(
                second.errno, f"{describe_error(error)}; truncating the file failed: {describe_error(second)}"
            ) from error

    def index_batch(self, size_bytes: int, last_offset: int, max_timestamp: int, interval: int) -> None:
        """Count a batch at the end of the file; as in Kafka, a batch gets an index entry every `interval` bytes."""
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

    def finish_time_index(self) -> None:
        """Add the largest timestamp to the time index, after the last batch. [loop]"""
        self.indexes()[1].maybe_append(self.max_timestamp, self.offset_of_max_timestamp)

    def seal(self) -> None:
        """Sync the log file and write the indexes; the cache decides from now on how long they stay open. [disk]"""
        self.finish_time_index()  # again: the indexes may have been rebuilt since `roll`
        self.sync()
        self.transactions.write()
        self.write_indexes()
        self.sealed = True
        self._cache.forget(self)
        self._cache.touch(self)

    def write_indexes(self) -> None:
        """Write both index files and sync them. [disk]"""
        self._indexes.write(self.indexes())

    # --- finding and cutting ---

    def find_batch(self, offset: int, end: int, file: SegmentFile, *, may_block: bool = True) -> BatchPlace | None:
        """Find the batch that holds `offset`, or the next one before position `end`.

        Raises CorruptDataError if a damaged batch is in its place or on the way to it.
        """
        position = self.indexes(may_block=may_block)[0].lookup(offset)
        try:
            if position >= end > 0:
                raise DamagedError(f"the index leads to byte {position}, after its end")
            for start, stop, bad in split_at_damage(self.corrupt, position, end):
                place = find_batch(file.file, offset, start, stop, may_block=may_block) if start < stop else None
                if place is not None:
                    if place.base_offset > offset and place.position == position > 0:
                        raise DamagedError(f"the index leads past offset {offset}")
                    return place
                if bad is not None and offset <= bad.last_offset:
                    raise CorruptDataError(f"{self.files.path(LOG_SUFFIX)} is damaged at byte {bad.position}", bad)
        except DamagedError as error:
            raise CorruptDataError(f"{self.files.path(LOG_SUFFIX)} is damaged: {error}", None) from error
        return None

    def truncate_to(self, offset: int) -> int:
        """Drop the batch that holds `offset` and all after it, and become active.

        Returns the offset after the last batch that stays. [disk]
        """
        self.activate(self.modified_ms)
        indexes = self.indexes()
        with self.pin() as file:
            place = self._find_or_damage(offset, file)
            if place is not None:
                self.size_bytes, offset = place.position, min(offset, place.base_offset)
                self.corrupt = tuple(bad for bad in self.corrupt if bad.end <= self.size_bytes)
                # First this: a region that reaches past the cut is not sent any more.
                self._cuts.append(self.size_bytes)
                file.file.truncate(self.size_bytes)
                file.file.sync()
            indexes.truncate_to(offset)
            self._measure_timestamps(file.file)
        self._unindexed_bytes = 0
        self._indexes.note_changed()
        return offset

    def _find_or_damage(self, offset: int, file: SegmentFile) -> BatchPlace | None:
        try:
            return self.find_batch(offset, self.size_bytes, file)
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
