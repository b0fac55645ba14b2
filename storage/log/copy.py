"""A copy of a live log, made in another log directory while the log goes on.

Segments are copied byte for byte, the oldest first, as far as they are written; what is appended meanwhile is copied
in the next step. When little is left, appends have to wait for `complete`, and the copy is the log from then on.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import NamedTuple

from kafkacompat.storage.files.filesystem import File, Files
from kafkacompat.storage.log.leader_epochs import LeaderEpochs
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log.partition_metadata import write_partition_metadata
from kafkacompat.storage.log.recovery import LoadedLog
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.producers.snapshots import Snapshots
from kafkacompat.storage.segment.index_files import write_indexes
from kafkacompat.storage.segment.indexes import CorruptIndexError, OffsetIndex, TimeIndex
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_file import SegmentCache
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX, TXN_INDEX_SUFFIX
from kafkacompat.storage.segment.segments import Segments
from kafkacompat.storage.segment.transaction_index import write_aborted

CHUNK_BYTES = 1 << 20
SYNC_BYTES = 8 << 20
"""So much is written at most before it is synced, so that the last sync, for which appends wait, has little to do."""


class SourceError(Exception):
    """The log that is copied cannot be read."""


class Extent(NamedTuple):
    """A segment and how much of it there was when a step began."""

    segment: Segment
    size_bytes: int


class LogCopy:
    """A copy in the making, in the folder *directory*."""

    def __init__(self, files: Files, source: Log, directory: str, cache: SegmentCache) -> None:
        self.source = source
        self.directory = directory
        self.end_offset = source.log_start_offset
        """Up to where the log is copied, as far as that can be told without looking into a segment. [loop]"""
        self._files = files
        self._cache = cache
        self._copied: dict[int, int] = {}
        self._complete: dict[int, Segment] = {}
        self._writing: tuple[int, File] | None = None
        self._unsynced_bytes = 0

    # --- [loop] ---

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches copied."""
        return sum(list(self._copied.values()))

    def left_bytes(self) -> int:
        """Bytes that are still to be copied."""
        return sum(each.size_bytes - self._copied.get(each.base_offset, 0) for each in self.source.segments)

    def extents(self) -> list[Extent]:
        """What there is to copy now."""
        return [Extent(segment, segment.size_bytes) for segment in self.source.segments]

    # --- [disk], of the directory that the copy is made in ---

    def create(self) -> None:
        """Make the folder; durable when this returns."""
        self._files.make_directory(self.directory)
        write_partition_metadata(self._files, self.directory, self.source.topic_id)
        self._files.sync_directory(os.path.dirname(self.directory))

    def advance(self, extents: Sequence[Extent], max_bytes: int | None = None) -> None:
        """Copy at most `max_bytes` more (None: all) of what `extents` named.

        Raises OSError when the copy cannot be written and SourceError when the log cannot be read.
        """
        self._forget_before(extents[0].segment.base_offset)
        left = sum(each.size_bytes for each in extents) if max_bytes is None else max_bytes
        for extent in extents:
            try:
                left -= self._copy(extent, left)
                if self._copied[extent.segment.base_offset] < extent.size_bytes:
                    return
                if extent is not extents[-1]:
                    self._end_segment(extent.segment)
            except SourceError:
                if extent.segment in self.source.segments:
                    raise
                return  # retention took it away; the next step does not name it any more

    def _copy(self, extent: Extent, max_bytes: int) -> int:
        """Copy some of one segment; returns how many bytes."""
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
            raise SourceError(f"reading {self.source.directory} failed: {error}") from error
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
        """Put a segment that grows no more on the disk, with its indexes."""
        base_offset = segment.base_offset
        if base_offset in self._complete:
            return
        self._sync(self._open(base_offset))
        self.close()
        write_indexes(self._files, self._segment(base_offset).files.path, self._indexes(segment))
        self._copy_transaction_index(segment)
        copy = self._complete[base_offset] = Segment.load(self._files, self.directory, base_offset, self._cache)
        copy.modified_ms = segment.modified_ms

    def _copy_transaction_index(self, segment: Segment) -> None:
        try:
            aborted = segment.aborted().since()
        except (OSError, CorruptIndexError) as error:
            raise SourceError(f"reading {self.source.directory} failed: {error}") from error
        write_aborted(self._files, self._segment(segment.base_offset).files.path(TXN_INDEX_SUFFIX), aborted)

    def _indexes(self, segment: Segment) -> tuple[OffsetIndex, TimeIndex]:
        try:
            return segment.indexes()
        except OSError as error:
            raise SourceError(f"reading {self.source.directory} failed: {error}") from error

    def _forget_before(self, base_offset: int) -> None:
        """Remove what the log does not have any more."""
        for base in [base for base in self._copied if base < base_offset]:
            if self._writing is not None and self._writing[0] == base:
                self.close()
            self._complete.pop(base, None)
            self._segment(base).files.remove()
            del self._copied[base]

    def complete(self) -> None:
        """Copy the rest and put everything on the disk. [no append meanwhile]"""
        self.advance(self.extents())
        while self.left_bytes():  # retention came in between
            self.advance(self.extents())
        active = self.source.segments.active
        self._sync(self._open(active.base_offset))
        self.close()
        self._copy_transaction_index(active)
        copy = self._segment(active.base_offset)
        copy.take_over(active)
        self._complete[active.base_offset] = copy
        self.end_offset = self.source.log_end_offset
        LeaderEpochs(self._files, self.directory, self.source.leader_epochs.entries).write()
        Snapshots(self._files, self.directory).write(self.end_offset, self.source.producer_state.producers.entries())
        self._files.sync_directory(self.directory)

    def open(self, directory: str) -> Log:
        """The complete copy as a log, once its folder is called *directory*. [loop]"""
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
        """Give the open file back."""
        if self._writing is not None:
            self._writing[1].close()
            self._writing = None
