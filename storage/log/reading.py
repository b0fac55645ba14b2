"""The reading side of a log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.log.state import LogState, may_pass
from kafkacompat.storage.segment.corruption import BadBatch, CorruptDataError, find_bad_batches
from kafkacompat.storage.segment.lookup import DamagedError
from kafkacompat.storage.segment.reader import (
    FoundRecord,
    FoundRegion,
    OffsetPosition,
    find_max_timestamp,
    find_timestamp,
    first_with_records,
    regions_from,
)
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_file import FileRegion
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


class LogReading(LogState):
    """Lookups by offset, time and epoch."""

    def read(
        self,
        offset: int,
        max_bytes: int,
        upper: OffsetPosition | None = None,
        at_least_one_batch: bool = True,
        *,
        may_block: bool = True,
    ) -> FileRegion | None:
        """Batches from the one that holds `offset` on, up to `upper` (default: the log's end). [loop]

        The region's first batch is whole, and with `at_least_one_batch` may be larger than `max_bytes`; its last one may
        be cut. Segments without records are passed by if anything follows. None when there is nothing to read, or not enough
        room for a batch. The caller releases the region.

        Raises KafkaError OFFSET_OUT_OF_RANGE outside [log_start_offset, log_end_offset], and, unless `may_block`,
        ColdDataError when finding the place would wait for the disk: then call `warm` and read again. CorruptDataError
        where a batch is known to be damaged; a region ends in front of one, and reading goes on behind it.
        """
        found = self._read(offset, max_bytes, upper, at_least_one_batch, may_block)
        return None if found is None else found.region

    def _read(
        self, offset: int, max_bytes: int, upper: OffsetPosition | None, at_least_one_batch: bool, may_block: bool
    ) -> FoundRegion | None:
        if self.offline:
            raise self._offline_error()
        end_offset = self.log_end_offset
        if not self.log_start_offset <= offset <= end_offset:
            detail = f"{offset} is outside of {self.log_start_offset} to {end_offset}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, detail)
        upper = upper or self.end_position()
        if offset >= upper.offset:
            return None
        try:
            return first_with_records(
                regions_from(self.segments, self._recent, offset, max_bytes, upper, at_least_one_batch, may_block)
            )
        except OSError as error:
            self.offline |= not may_pass(error)
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"reading {self.directory} failed: {describe_error(error)}"
            ) from error

    def warm(self, offset: int) -> None:
        """Bring what finding `offset` takes into memory; where that meets damage, find out how far it goes. [disk]"""
        try:
            region = self.read(offset, 0)
        except CorruptDataError as error:
            self._find_way_behind(error, offset)
            return
        if region is not None:
            region.release()

    def _find_way_behind(self, error: CorruptDataError, offset: int) -> None:
        if error.behind is None:
            self.find_way(self.segments[max(0, self.segments.floor(offset))])

    def offset_for_timestamp(self, timestamp: int) -> FoundRecord | None:
        """The first record that is no earlier than `timestamp` (ms); None when all are earlier. [disk]"""
        return self._searched(find_timestamp, timestamp, self.log_start_offset)

    def max_timestamp(self) -> FoundRecord | None:
        """The first record with the log's largest timestamp; None when no record has a timestamp. [disk]"""
        return self._searched(find_max_timestamp)

    def _searched(self, search: Callable[..., FoundRecord | None], *arguments: int) -> FoundRecord | None:
        with self._disk_operation(repeatable=True):
            try:
                return search(self.segments, *arguments, self.config.max_decompressed_bytes, self.find_way)
            except DamagedError as error:
                raise CorruptDataError(f"{self.directory}: {error}", None) from error

    # --- damage ---

    def find_way(self, segment: Segment) -> None:
        """After headers led nowhere: find out which batches are damaged, and build the indexes again. [disk]

        It may have been the indexes as well: an entry that has rotted leads into the middle of a batch.
        """
        damaged = self.examine(segment)
        if segment in self.segments:
            if not damaged:
                log.warning("%s: its indexes do not lead to its batches and are built again", segment.path(LOG_SUFFIX))
            with self._disk_operation(repeatable=True):
                segment.index_again()

    def examine(self, segment: Segment) -> bool:
        """Read a segment through and remember what is damaged; whether anything is. [disk]"""
        if segment not in self.segments:
            return False  # retention or compaction took it away meanwhile
        size_bytes, last_offset = segment.size_bytes, self.last_offset_of(segment)
        with self._disk_operation(repeatable=True):
            file = segment.pin()
            try:
                found = find_bad_batches(file.file, segment.base_offset, size_bytes, last_offset)
            finally:
                file.release()
        segment.remember_corrupt(found)
        return bool(found)

    def last_offset_of(self, segment: Segment) -> int:
        """The largest offset that a segment can hold. [loop]"""
        following = self.segments.behind(segment)
        return (following.base_offset if following is not None else self.log_end_offset) - 1

    @property
    def corrupt(self) -> dict[int, tuple[BadBatch, ...]]:
        """The batches known to be damaged, by the base offset of their segment. [loop]"""
        return {each.base_offset: each.corrupt for each in self.segments if each.corrupt}

    def segment_starts(self, now_ms: int) -> list[tuple[int, int]]:
        """(offset, time in ms): where segments begin and when each was last written, oldest first. [loop]

        Behind the last segment, unless it is empty, follows the log's end, which is written `now_ms`. So is a
        segment that was never written to.
        """
        if self.offline:
            raise self._offline_error()
        starts = [
            (max(self.log_start_offset, each.base_offset), now_ms if each.modified_ms < 0 else each.modified_ms)
            for each in self.segments
        ]
        end = [(self.log_end_offset, now_ms)] if self.segments.active.size_bytes else []
        return starts + end

    def offset_for_leader_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest epoch <= `epoch`, its end offset); (-1, -1) when not known. [loop]"""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)
