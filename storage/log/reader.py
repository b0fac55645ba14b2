"""Reading a log by offset, by time and by leader epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.log.examiner import LogExaminer
from kafkacompat.storage.log.state import LogState, is_transient
from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.header_scan import DamagedError
from kafkacompat.storage.segment.positions import OffsetPosition
from kafkacompat.storage.segment.region_search import FoundRegion, find_regions, skip_empty_regions
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.storage.segment.timestamp_search import FoundRecord, find_max_timestamp, find_timestamp
from kafkacompat.wire.errors import ErrorCode, KafkaError


class LogReader:
    """Finds regions to send, and offsets. It changes nothing, but takes the log offline if the disk fails."""

    __slots__ = ("_examiner", "_state")

    def __init__(self, state: LogState, examiner: LogExaminer) -> None:
        self._state = state
        self._examiner = examiner

    def read(
        self,
        offset: int,
        max_bytes: int,
        upper: OffsetPosition | None = None,
        at_least_one_batch: bool = True,
        *,
        may_block: bool = True,
    ) -> FileRegion | None:
        """Find the batches from the one that holds `offset` up to `upper` (default: the log's end). [loop]

        The first batch of the region is whole, and may exceed `max_bytes` if `at_least_one_batch`; the last one may be cut
        off. Segments without records are skipped if anything follows. Returns None if there is nothing to read, or no room
        for a batch. The caller releases the region.

        Raises KafkaError OFFSET_OUT_OF_RANGE outside [log_start_offset, log_end_offset]. Raises ColdDataError if the search
        needs cold data and `may_block` is False: call `warm`, then read again. Raises CorruptDataError at a damaged batch;
        a region ends before one, and the next read starts after it.
        """
        found_region = self.find_region(offset, max_bytes, upper, at_least_one_batch, may_block)
        return None if found_region is None else found_region.region

    def read_for_follower(
        self, offset: int, max_bytes: int, at_least_one_batch: bool = True, *, may_block: bool = True
    ) -> FileRegion | None:
        """As `read`, up to the log's end and with segments without records: their batches tell of producers. [loop]"""
        found_region = self.find_region(offset, max_bytes, None, at_least_one_batch, may_block, _take_first)
        return None if found_region is None else found_region.region

    def find_region(
        self,
        offset: int,
        max_bytes: int,
        upper: OffsetPosition | None,
        at_least_one_batch: bool,
        may_block: bool,
        choose: Callable[[Iterator[FoundRegion]], FoundRegion | None] = skip_empty_regions,
    ) -> FoundRegion | None:
        """As `read`, but return the region with its segment; `upper` is None for the log's end. [loop]"""
        state = self._state
        if state.offline:
            raise state.offline_error()
        end_offset = state.log_end_offset
        if not state.log_start_offset <= offset <= end_offset:
            detail = f"offset {offset} is outside of {state.log_start_offset} to {end_offset}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, detail)
        upper = upper or state.end_position()
        if offset >= upper.offset:
            return None
        try:
            return choose(
                find_regions(
                    state.segments, state.recent_batches, offset, max_bytes, upper, at_least_one_batch, may_block
                )
            )
        except OSError as error:
            if not is_transient(error):
                state.take_offline(describe_error(error))
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"reading {state.directory} failed: {describe_error(error)}"
            ) from error

    def find_position(self, offset: int, *, may_block: bool = True) -> OffsetPosition:
        """Return an offset of the log with its place; inside a batch, the batch's beginning. [loop]

        An offset after the log's end counts as the end, one before the log start offset as that.
        Raises ColdDataError if `may_block` is False and finding the place needs cold data, and CorruptDataError at damage
        of unknown extent.
        """
        state = self._state
        if offset >= state.log_end_offset:
            return state.end_position()
        segment = state.segments[max(0, state.segments.find_slot(offset))]
        known = state.recent_batches.get(offset) if segment is state.segments.active else None
        if known is not None:
            return OffsetPosition(offset, segment.base_offset, known[0])
        with state.disk_operation(repeatable=True), segment.pin(may_block=may_block) as file:
            try:
                place = segment.find_batch(offset, segment.size_bytes, file, may_block=may_block)
            except CorruptDataError as error:
                if error.bad is None:
                    raise
                return OffsetPosition(offset, segment.base_offset, error.bad.position)
        if place is None:
            return OffsetPosition(offset, segment.base_offset, segment.size_bytes)
        offset = max(min(offset, place.base_offset), state.log_start_offset)
        return OffsetPosition(offset, segment.base_offset, place.position)

    def locate(self, offset: int) -> OffsetPosition:
        """As `find_position`, but examine the segment if the search meets damage of unknown extent. [disk]"""
        try:
            return self.find_position(offset)
        except CorruptDataError as error:
            self.examine_at(error, offset)
            return self.find_position(offset)

    def warm(self, offset: int) -> None:
        """Load what a search for `offset` needs; if it meets damage, examine the segment. [disk]"""
        try:
            region = self.read(offset, 0)
        except CorruptDataError as error:
            self.examine_at(error, offset)
            return
        if region is not None:
            region.release()

    def examine_at(self, error: CorruptDataError, offset: int) -> None:
        """Examine the segment of `offset` after a read failed with `error`, unless the damage is known. [disk]"""
        if error.next_offset is None:
            self._examiner.examine_and_reindex(self._state.segments[max(0, self._state.segments.find_slot(offset))])

    def offset_for_timestamp(self, timestamp: int) -> FoundRecord | None:
        """Find the first record whose timestamp is >= `timestamp` (ms); None without one. [disk]"""
        return self._run_search(find_timestamp, timestamp, self._state.log_start_offset)

    def find_max_timestamp(self) -> FoundRecord | None:
        """Find the first record with the log's largest timestamp; None if no record has a timestamp. [disk]"""
        return self._run_search(find_max_timestamp)

    def _run_search(self, search: Callable[..., FoundRecord | None], *arguments: int) -> FoundRecord | None:
        with self._state.disk_operation(repeatable=True):
            try:
                return search(
                    self._state.segments,
                    *arguments,
                    self._state.config.max_decompressed_bytes,
                    self._examiner.examine_and_reindex,
                )
            except DamagedError as error:
                raise CorruptDataError(f"{self._state.directory}: {error}", None) from error

    def list_segment_starts(self, now_ms: int) -> list[tuple[int, int]]:
        """Return (first offset, time of the last write in ms) of each segment, oldest first. [loop]

        A segment that was never written to has the time `now_ms`. Unless the last segment is empty, the log's end follows
        it, with the same time.
        """
        if self._state.offline:
            raise self._state.offline_error()
        starts = [
            (
                max(self._state.log_start_offset, segment.base_offset),
                now_ms if segment.modified_ms < 0 else segment.modified_ms,
            )
            for segment in self._state.segments
        ]
        end = [(self._state.log_end_offset, now_ms)] if self._state.segments.active.size_bytes else []
        return starts + end

    def offset_for_leader_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (largest epoch <= `epoch`, its end offset); (-1, -1) if it is unknown. [loop]"""
        return self._state.leader_epochs.end_offset_for(epoch, self._state.log_end_offset)


def _take_first(regions: Iterator[FoundRegion]) -> FoundRegion | None:
    return next(regions, None)
