"""Writing a compacted segment."""

from __future__ import annotations

from kafkacompat.storage.compaction.job import CleaningJob
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import CLEANED_SUFFIX, LOG_SUFFIX, TXN_INDEX_SUFFIX
from kafkacompat.storage.segment.shared_files import SegmentCache
from kafkacompat.storage.segment.transaction_index import AbortedTransaction, write_aborted
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import read_header

WRITE_BYTES = 1 << 20
SYNC_BYTES = 16 << 20
"""Bytes written between syncs: one large sync would delay other users of the disk."""


class SegmentWriter:
    """Writes the `.cleaned` files of a segment."""

    def __init__(self, files: Files, job: CleaningJob, base_offset: int) -> None:
        self._files = files
        self._directory = job.directory
        self._interval_bytes = job.config.index_interval_bytes
        self.segment = Segment.create(files, job.directory, base_offset, SegmentCache(), CLEANED_SUFFIX)
        self._pinned = self.segment.pin()
        self._log = self._pinned.file
        self._waiting: list[Buffer] = []
        self._waiting_bytes = self._unsynced_bytes = 0

    def add(self, batch: Buffer) -> None:
        """Add a batch, which is written with the next megabyte."""
        header = read_header(batch)
        self.segment.index_batch(header.size_bytes, header.last_offset, header.latest_timestamp, self._interval_bytes)
        self._waiting.append(batch)
        self._waiting_bytes += header.size_bytes
        if self._waiting_bytes >= WRITE_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._log.append((b"".join(self._waiting),), self._waiting_bytes)
            self._unsynced_bytes += self._waiting_bytes
            self._waiting, self._waiting_bytes = [], 0
        if self._unsynced_bytes >= SYNC_BYTES:
            self._log.sync()
            self._unsynced_bytes = 0

    def complete(self, aborted: list[AbortedTransaction], modified_ms: int) -> None:
        """Write and sync all files; `modified_ms` becomes the time of the last write."""
        self._flush()
        segment = self.segment
        segment.finish_time_index()
        self._log.sync()
        segment.write_indexes()
        write_aborted(self._files, segment.files.path(TXN_INDEX_SUFFIX), aborted)
        self._files.set_modified_ms(segment.files.path(LOG_SUFFIX), modified_ms)
        self._files.sync_directory(self._directory)

    def close(self) -> None:
        """Close the files."""
        self._pinned.release()
        self.segment.unload()
