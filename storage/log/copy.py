"""Copying a live log to another log directory while it is appended to.

Segments are copied byte for byte, the oldest first. A step copies what was written when it began; the next one copies
later appends. When little is left, appends wait for `complete`, and the copy replaces the log.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import NamedTuple

from kafkacompat.storage.files.filesystem import File, Files
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.log.leader_epochs import LeaderEpochs
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log.partition_metadata import write_partition_metadata
from kafkacompat.storage.log.recovery import LoadedLog
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.producers.snapshots import Snapshots
from kafkacompat.storage.segment.index_files import write_indexes
from kafkacompat.storage.segment.indexes import CorruptIndexError, OffsetIndex, TimeIndex
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX, TXN_INDEX_SUFFIX
from kafkacompat.storage.segment.segments import Segments
from kafkacompat.storage.segment.shared_files import SegmentCache
from kafkacompat.storage.segment.transaction_index import write_aborted

CHUNK_BYTES = 1 << 20
SYNC_BYTES = 8 << 20
"""Bytes written between syncs, so that the last sync, for which appends wait, is short."""


class CopySourceError(Exception):
    """The source log cannot be read."""


class CopyExtent(NamedTuple):
    """A segment and its size when a step began."""

    segment: Segment
    size_bytes: int


class LogCopy:
    """A growing copy of a log in the folder `directory`."""

    def __init__(self, files: Files, source: Log, directory: str, cache: SegmentCache) -> None:
        self.source = source
        self.directory = directory
        self.end_offset = source.log_start_offset
        """The log is copied at least up to this offset, by the segments alone. [loop]"""
        self._files = files
        self._cache = cache
        self._copied: dict[int, int] = {}
        self._complete: dict[int, Segment] = {}
        self._writing: tuple[int, File] | None = None
        self._unsynced_bytes = 0

    # --- [loop] ---

    @property
    def size_bytes(self) -> int:
        """Bytes of all copied batches."""
        return sum(list(self._copied.values()))

    def count_remaining_bytes(self) -> int:
        """Return the number of bytes that are not copied yet."""
        return sum(segment.size_bytes - self._copied.get(segment.base_offset, 0) for segment in self.source.segments)

    def list_extents(self) -> list[CopyExtent]:
        """Return the current segments and sizes."""
        return [CopyExtent(segment, segment.size_bytes) for segment in self.source.segments]

    # --- [disk], of the directory that the copy is made in ---

    def create(self) -> None:
        """Create and sync the folder."""
        self._files.make_directory(self.directory)
        write_partition_metadata(self._files, self.directory, self.source.topic_id)
        self._files.sync_directory(os.path.dirname(self.directory))

    def advance(self, extents: Sequence[CopyExtent], max_bytes: int | None = None) -> None:
        """Copy at most `max_bytes` more (None: all) of the `extents`.

        Raises OSError if the copy cannot be written, and CopySourceError if the log cannot be read.
        """
        self._forget_before(extents[0].segment.base_offset)
        left = sum(extent.size_bytes for extent in extents) if max_bytes is None else max_bytes
        for extent in extents:
            try:
                left -= self._copy(extent, left)
                if self._copied[extent.segment.base_offset] < extent.size_bytes:
                    return
                if extent is not extents[-1]:
                    self._end_segment(extent.segment)
            except CopySourceError:
                if extent.segment in self.source.segments:
                    raise
                return  # retention removed it; it is not among the next extents

    def _copy(self, extent: CopyExtent, max_bytes: int) -> int:
        """Copy part of one segment; returns the number of bytes."""
        base_offset = extent.segment.base_offset
        self.end_offset = max(self.end_offset, base_offset)
        start = position = self._copied.setdefault(base_offset, 0)
        end = min(extent.size_bytes, start + max_bytes)
        if base_offset in self._complete:
            return 0
        target = self._open(base_offset)
        while position < end:
            data = self._read(extent.segment, position, min(CHUNK_BYTES, end - position))
            target.append((data,), len(data))
            position += len(data)
            self._copied[base_offset] = position
            self._unsynced_bytes += len(data)
            if self._unsynced_bytes >= SYNC_BYTES:
                self._sync(target)
        return position - start

    def _read(self, segment: Segment, position: int, size_bytes: int) -> bytes:
        try:
            file = segment.pin()
            try:
                data = file.file.pread(size_bytes, position)
            finally:
                file.release()
            if not data:
                raise OSError(errno.EIO, f"{segment!r} ends at {position}")
        except OSError as error:
            raise CopySourceError(f"reading {self.source.directory} failed: {describe_error(error)}") from error
        return data

    def _segment(self, base_offset: int) -> Segment:
        return Segment(self._files, self.directory, base_offset, self._cache)

    def _open(self, base_offset: int) -> File:
        if self._writing is None or self._writing[0] != base_offset:
            self.close()
            file = self._files.open(self._segment(base_offset).files.path(LOG_SUFFIX), create=True)
            self._writing = (base_offset, file)
        return self._writing[1]

    def _sync(self, file: File) -> None:
        file.sync()
        self._unsynced_bytes = 0

    def _end_segment(self, segment: Segment) -> None:
        """Sync a completely copied segment, and write its indexes."""
        base_offset = segment.base_offset
        if base_offset in self._complete:
            return
        self._sync(self._open(base_offset))
        self.close()
        write_indexes(self._files, self._segment(base_offset).files.path, self._build_indexes(segment))
        self._copy_transaction_index(segment)
        copy = self._complete[base_offset] = Segment.load(self._files, self.directory, base_offset, self._cache)
        copy.modified_ms = segment.modified_ms

    def _copy_transaction_index(self, segment: Segment) -> None:
        try:
            aborted = segment.aborted().since()
        except (OSError, CorruptIndexError) as error:
            raise CopySourceError(f"reading {self.source.directory} failed: {describe_error(error)}") from error
        write_aborted(self._files, self._segment(segment.base_offset).files.path(TXN_INDEX_SUFFIX), aborted)

    def _build_indexes(self, segment: Segment) -> tuple[OffsetIndex, TimeIndex]:
        try:
            return segment.indexes()
        except OSError as error:
            raise CopySourceError(f"reading {self.source.directory} failed: {describe_error(error)}") from error

    def _forget_before(self, base_offset: int) -> None:
        """Remove the copies of segments that the log has deleted."""
        for base in [base for base in self._copied if base < base_offset]:
            if self._writing is not None and self._writing[0] == base:
                self.close()
            self._complete.pop(base, None)
            self._segment(base).files.remove()
            del self._copied[base]

    def complete(self) -> None:
        """Copy the rest and sync everything. [no append meanwhile]"""
        self.advance(self.list_extents())
        while self.count_remaining_bytes():  # retention removed a segment meanwhile
            self.advance(self.list_extents())
        active = self.source.segments.active
        self._sync(self._open(active.base_offset))
        self.close()
        self._copy_transaction_index(active)
        copy = self._segment(active.base_offset)
        copy.adopt_indexes(active)
        self._complete[active.base_offset] = copy
        self.end_offset = self.source.log_end_offset
        LeaderEpochs(self._files, self.directory, self.source.leader_epochs.entries).write()
        Snapshots(self._files, self.directory).write(self.end_offset, self.source.producer_state.producers.entries())
        self._files.sync_directory(self.directory)

    def open(self, directory: str) -> Log:
        """Open the complete copy, whose folder was renamed to `directory`, as a log. [loop]"""
        segments = [self._complete[base] for base in sorted(self._complete)]
        corrupt = self.source.examiner.corrupt
        for segment in segments:
            segment.files.note_moved(directory)
            segment.corrupt = corrupt.get(segment.base_offset, ())
        source = self.source
        loaded = LoadedLog(
            Segments(segments),
            max(source.log_start_offset, segments[0].base_offset),
            self.end_offset,
            self.end_offset,
            LeaderEpochs(self._files, directory, source.leader_epochs.entries),
            source.producer_state,
        )
        state = LogState(
            self._files, directory, source.topic, source.partition, source.topic_id, source.config, loaded, self._cache
        )
        state.cleaner_offset = source.cleaner_offset
        return Log(state)

    def close(self) -> None:
        """Close the open file."""
        if self._writing is not None:
            self._writing[1].close()
            self._writing = None
