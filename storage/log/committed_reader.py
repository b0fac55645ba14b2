"""Reading a log for read_committed consumers: up to the last stable offset, with the aborted transactions."""

from __future__ import annotations

import sys
from typing import NamedTuple

from kafkacompat.storage.log.examiner import LogExaminer
from kafkacompat.storage.log.reader import LogReader
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.log.transaction_index_recovery import ensure_transaction_index
from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.indexes import CorruptIndexError
from kafkacompat.storage.segment.positions import OffsetPosition
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.storage.segment.transaction_index import AbortedTransaction

MOST_ABORTED = 10_000
"""A read that finds this many aborted transactions, which takes ten milliseconds, is repeated with LEAST_READ_BYTES."""
LEAST_READ_BYTES = 1 << 20
"""No more than MOST_ABORTED markers fit into this many bytes."""


class CommittedRead(NamedTuple):
    """Batches up to the last stable offset, and the aborted transactions among them."""

    region: FileRegion | None
    aborted: list[AbortedTransaction]


class CommittedReader:
    """Reads below the last stable offset; rebuilds and writes the transaction indexes that this needs."""

    __slots__ = ("_examiner", "_reader", "_state")

    def __init__(self, state: LogState, reader: LogReader, examiner: LogExaminer) -> None:
        self._state = state
        self._reader = reader
        self._examiner = examiner

    def find_stable_end(self, high_watermark: OffsetPosition, *, may_block: bool = True) -> OffsetPosition:
        """Return the last stable offset: where the first open transaction begins, else the high watermark. [loop]

        The position is -1 if nothing before it can be read. Raises ColdDataError if `may_block` is False and its place is not
        in memory, and CorruptDataError.
        """
        first = self._state.producer_state.open.first
        if first is None or first.offset >= high_watermark.offset:
            return high_watermark
        if first.offset <= self._state.log_start_offset:
            return OffsetPosition(self._state.log_start_offset, -1, -1)
        return first if first.position >= 0 else self._reader.find_position(first.offset, may_block=may_block)

    def read_committed(
        self,
        offset: int,
        max_bytes: int,
        high_watermark: OffsetPosition,
        at_least_one_batch: bool = True,
        *,
        may_block: bool = True,
    ) -> CommittedRead:
        """As LogReader.read, up to the last stable offset; returns less if very many transactions were aborted. [loop]"""
        upper = self.find_stable_end(high_watermark, may_block=may_block)
        read = self._read_committed(offset, max_bytes, upper, at_least_one_batch, may_block, MOST_ABORTED)
        if len(read.aborted) < MOST_ABORTED or read.region is None:
            return read
        read.region.release()
        return self._read_committed(
            offset, min(max_bytes, LEAST_READ_BYTES), upper, at_least_one_batch, may_block, sys.maxsize
        )

    def _read_committed(
        self, offset: int, max_bytes: int, upper: OffsetPosition, at_least_one_batch: bool, may_block: bool, enough: int
    ) -> CommittedRead:
        found_region = self._reader.find_region(offset, max_bytes, upper, at_least_one_batch, may_block)
        if found_region is None:
            return CommittedRead(None, [])
        segment, region, _ = found_region
        if segment is self._state.segments.active and not len(segment.aborted()):
            return CommittedRead(region, [])  # the case of nearly every read at the end
        try:
            end = self._end_offset(segment, region.position + region.size_bytes, upper.offset, may_block)
            return CommittedRead(region, self._list_aborted(offset, end, may_block, enough))
        except BaseException:
            region.release()
            raise

    def _end_offset(self, segment: Segment, position: int, end_offset: int, may_block: bool) -> int:
        """Return an offset after the batches of a segment that begin before a position."""
        known = segment.indexes(may_block=may_block)[0].last_offset_from(position)
        return min(end_offset, self._examiner.last_offset_of(segment) + 1 if known is None else known)

    def _list_aborted(self, start: int, end: int, may_block: bool, enough: int) -> list[AbortedTransaction]:
        aborted: list[AbortedTransaction] = []
        for segment in self._state.segments.since(start):
            if segment.collect_aborted(start, end, aborted, may_block=may_block, enough=enough):
                break
        return aborted

    def warm(self, offset: int, max_bytes: int, high_watermark: OffsetPosition) -> None:
        """Load what a `read_committed` of `max_bytes` from `offset` needs. [disk]"""
        try:
            upper = self.find_stable_end(high_watermark)
            found_region = self._reader.find_region(offset, max_bytes, upper, True, True)
        except CorruptDataError as error:
            self._reader.examine_at(error, offset)
            return
        if found_region is not None:
            segment, region, _ = found_region
            region.release()
            with self._state.disk_operation(repeatable=True):
                end = self._end_offset(segment, region.position + region.size_bytes, upper.offset, True)
                self._warm_aborted(offset, end)

    def _warm_aborted(self, start: int, end: int) -> None:
        for segment in self._state.segments.since(start):
            try:
                is_last = segment.collect_aborted(start, end, [], may_block=True)
            except CorruptIndexError:
                ensure_transaction_index(self._state, segment)
                is_last = False
            if is_last:
                return

    def write_transaction_index(self) -> None:
        """Write the aborted transactions that the files lack, before compaction or a copy reads the files. [disk]

        Files that cannot be read are rebuilt.
        """
        with self._state.disk_operation(repeatable=True):
            for segment in self._state.segments:
                ensure_transaction_index(self._state, segment)
                if segment.transactions.write():
                    self._state.folder_is_synced = False
