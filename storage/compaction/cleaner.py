"""Compacting a log: a first pass reads the keys, a second one writes the segments. It runs in a worker process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from kafkacompat.storage.compaction.batch_filter import BatchFilter
from kafkacompat.storage.compaction.checked_batches import CorruptBatchError, read_checked_batches
from kafkacompat.storage.compaction.grouping import group_segments
from kafkacompat.storage.compaction.job import (
    CleanedSegment,
    CleaningJob,
    CleaningProgress,
    CleaningResult,
    CleaningSource,
)
from kafkacompat.storage.compaction.offset_map import OffsetMap
from kafkacompat.storage.compaction.transaction_tracking import TransactionTracker
from kafkacompat.storage.compaction.writer import SegmentWriter
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.index_files import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX, TXN_INDEX_SUFFIX
from kafkacompat.storage.segment.transaction_index import AbortedTransaction, read_aborted
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import BatchHeader, read_body
from kafkacompat.wire.record_slices import slice_in_turns
from kafkacompat.wire.record_walk import RecordSlice

STEP_BYTES = 1 << 20

CleaningStep: TypeAlias = "CleaningProgress | CleanedSegment | CleaningResult"
_Batch: TypeAlias = "tuple[BatchHeader, memoryview]"


def compact(files: Files, job: CleaningJob, end_turn: Callable[[], object] = os.sched_yield) -> Iterator[CleaningStep]:
    """Compact a log step by step; the last step is the CleaningResult.

    The caller swaps a CleanedSegment in before the next step, so that a log of any size needs room for one more segment.
    ``end_turn`` is called every few tenths of a millisecond, so that the broker does not wait for a processor.
    Raises CorruptBatchError, CorruptIndexError for a damaged transaction index, and OSError.
    """
    cleaning = _Cleaning(files, job, end_turn)
    try:
        yield from cleaning.steps()
    except MalformedError as problem:
        raise CorruptBatchError(f"{job.directory}: {problem}") from problem
    finally:
        cleaning.close()


class _Cleaning:
    def __init__(self, files: Files, job: CleaningJob, end_turn: Callable[[], object]) -> None:
        self._files = files
        self._end_turn = end_turn
        self._job = job
        most_keys = job.end_offset - job.first_dirty_offset
        self._map = OffsetMap.of_bytes(job.map_bytes, job.load_factor, most_keys)
        ends = [*(source.base_offset for source in job.sources[1:]), job.end_offset]
        self._end_offsets = {source.base_offset: end for source, end in zip(job.sources, ends, strict=True)}
        self._unreported_bytes = self._read_bytes = self._written_bytes = 0

    def close(self) -> None:
        self._map.close()

    def steps(self) -> Iterator[CleaningStep]:
        job = self._job
        aborted = self._list_aborted()
        yield from self._learn_keys(
            TransactionTracker(
                [transaction for transaction in aborted if transaction.last_offset >= job.first_dirty_offset]
            )
        )
        end_offset = self._map.latest_offset + 1
        batch_filter = BatchFilter(job, self._map, transactions := TransactionTracker(aborted), self._end_turn)
        sources = [transaction for transaction in job.sources if transaction.base_offset < end_offset]
        for group in group_segments(
            sources, [self._index_bytes(transaction) for transaction in sources], job.end_offset, job.config
        ):
            yield from self._clean(group, batch_filter, transactions)
        yield CleaningResult(
            end_offset,
            batch_filter.records_read,
            batch_filter.records_kept,
            self._read_bytes,
            self._written_bytes,
            batch_filter.keyless,
            len(self._map),
        )

    # Reading the segments' files

    def _path(self, base_offset: int, suffix: str) -> str:
        return os.path.join(self._job.directory, f"{base_offset:020d}{suffix}")

    def _list_aborted(self) -> list[AbortedTransaction]:
        bases = [*(source.base_offset for source in self._job.sources), *self._job.bases]
        aborted: list[AbortedTransaction] = []
        for base_offset in bases:
            aborted += read_aborted(self._files, self._path(base_offset, TXN_INDEX_SUFFIX))
        return aborted

    def _index_bytes(self, source: CleaningSource) -> int:
        paths = [self._path(source.base_offset, suffix) for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX)]
        return max(self._files.size(path) if self._files.exists(path) else 0 for path in paths)

    def _offsets(self, source: CleaningSource) -> range:
        return range(source.base_offset, self._end_offsets[source.base_offset])

    def _read_batches(self, source: CleaningSource) -> Iterator[_Batch]:
        path = self._path(source.base_offset, LOG_SUFFIX)
        file = self._files.open(path)
        try:
            yield from read_checked_batches(file, path, source.size_bytes, self._offsets(source))
        finally:
            file.close()

    def _count(self, read_bytes: int, written_bytes: int = 0) -> Iterator[CleaningProgress]:
        self._read_bytes += read_bytes
        self._written_bytes += written_bytes
        self._unreported_bytes += read_bytes + written_bytes
        if self._unreported_bytes >= STEP_BYTES:
            yield CleaningProgress(self._unreported_bytes)
            self._unreported_bytes = 0

    # The first pass: the last offset of each key

    def _learn_keys(self, transactions: TransactionTracker) -> Iterator[CleaningStep]:
        """Fill the map from where the last compaction stopped, until it is full or has all keys."""
        for source in self._job.sources:
            end_offset = self._offsets(source).stop
            if end_offset <= self._job.first_dirty_offset:
                continue
            for header, batch in self._read_batches(source):
                if not self._learn(header, batch, transactions):
                    return
                yield from self._count(header.size_bytes)
            self._map.latest_offset = end_offset - 1

    def _learn(self, header: BatchHeader, batch: memoryview, transactions: TransactionTracker) -> bool:
        """Put the keys of a batch into the map; False if the map is full."""
        offset_map = self._map
        if header.last_offset < self._job.first_dirty_offset:
            return True
        if header.is_control:
            transactions.is_marker_without_batches(header, batch)
        elif not transactions.is_aborted(header):
            body = bytes(read_body(batch, header, self._job.config.max_decompressed_bytes))
            for turn in slice_in_turns(body, header.record_count):
                if not self._learn_turn(turn, header.base_offset):
                    return False
                self._end_turn()
        offset_map.latest_offset = header.last_offset
        return True

    def _learn_turn(self, turn: Sequence[RecordSlice], base_offset: int) -> bool:
        """Put the keys of some records into the map; False if the map is full."""
        first_offset, offset_map = self._job.first_dirty_offset, self._map
        for _, _, delta, key, _ in turn:
            offset = base_offset + delta
            if key is not None and offset >= first_offset:
                if not offset_map.put(key, offset):
                    return False
                offset_map.latest_offset = offset
        return True

    # The second pass: all records but those that a later one replaces

    def _clean(
        self, group: Sequence[CleaningSource], batch_filter: BatchFilter, transactions: TransactionTracker
    ) -> Iterator[CleaningStep]:
        writer = SegmentWriter(self._files, self._job, group[0].base_offset)
        last = max((source for source in group if source.size_bytes), default=group[-1])
        changed = len(group) > 1
        try:
            for source in group:
                left_bytes = source.size_bytes
                for header, batch in self._read_batches(source):
                    left_bytes -= header.size_bytes
                    # The last batch stays, so that the segment ends where the replaced ones ended: a start that
                    # completes the swap relies on it.
                    kept = batch_filter.filter_batch(header, batch, must_stay=source is last and not left_bytes)
                    changed |= kept is not batch
                    if kept is not None:
                        writer.add(kept)
                    yield from self._count(header.size_bytes, len(kept) if kept is not None else 0)
            writer.complete(transactions.take_kept(), group[-1].modified_ms)
        finally:
            writer.close()
        if changed:
            yield CleanedSegment(group[0].base_offset, tuple(source.base_offset for source in group))
        else:
            writer.segment.files.remove()
