"""Reading a log by offset, by time and by leader epoch."""

from __future__ import annotations

from collections.abc import Callable

from kafkacompat.storage.log.examiner import LogExaminer
from kafkacompat.storage.log.state import LogState, is_transient
from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.lookup import DamagedError
from kafkacompat.storage.segment.positions import OffsetPosition
from kafkacompat.storage.segment.region_search import FoundRegion, first_with_records, regions_from
from kafkacompat.storage.segment.segment_file import FileRegion
from kafkacompat.storage.segment.timestamp_search import FoundRecord, find_max_timestamp, find_timestamp
from kafkacompat.wire.errors import ErrorCode, KafkaError


class LogReader:
    """Finds regions of the log to send, and offsets; changes nothing, but takes the log offline when the disk fails."""

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
        """Batches from the one that holds `offset` on, up to `upper` (default: the log's end). [loop]

        The region's first batch is whole, and with `at_least_one_batch` may be larger than `max_bytes`; its last one may
        be cut. Segments without records are passed by if anything follows. None when there is nothing to read, or not enough
        room for a batch. The caller releases the region.

        Raises KafkaError OFFSET_OUT_OF_RANGE outside [log_start_offset, log_end_offset], and, unless `may_block`,
        ColdDataError when finding the place would wait for the disk: then call `warm` and read again. CorruptDataError
        where a batch is known to be damaged; a region ends in front of one, and reading goes on behind it.
        """
        found = self.find_region(offset, max_bytes, upper, at_least_one_batch, may_block)
        return None if found is None else found.region

    def find_region(
        self, offset: int, max_bytes: int, upper: OffsetPosition | None, at_least_one_batch: bool, may_block: bool
    ) -> FoundRegion | None:
        """As `read`, with what CommittedReader needs of the region found. The caller releases it. [loop]"""
        state = self._state
        if state.offline:
            raise state.offline_error()
        end_offset = state.log_end_offset
        if not state.log_start_offset <= offset <= end_offset:
            detail = f"{offset} is outside of {state.log_start_offset} to {end_offset}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, detail)
        upper = upper or state.end_position()
        if offset >= upper.offset:
            return None
        try:
            return first_with_records(
                regions_from(
                    state.segments, state.recent_batches, offset, max_bytes, upper, at_least_one_batch, may_block
                )
            )
        except OSError as error:
            state.offline |= not is_transient(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"reading {state.directory} failed: {error}") from error

    def warm(self, offset: int) -> None:
        """Bring what finding `offset` takes into memory; where that meets damage, find out how far it goes. [disk]"""
        try:
            region = self.read(offset, 0)
        except CorruptDataError as error:
            self.examine_at(error, offset)
            return
        if region is not None:
            region.release()

    def examine_at(self, error: CorruptDataError, offset: int) -> None:
        if error.behind is None:
            self._examiner.examine_and_reindex(self._state.segments[max(0, self._state.segments.floor(offset))])

    def offset_for_timestamp(self, timestamp: int) -> FoundRecord | None:
        """The first record that is no earlier than `timestamp` (ms); None when all are earlier. [disk]"""
        return self._searched(find_timestamp, timestamp, self._state.log_start_offset)

    def max_timestamp(self) -> FoundRecord | None:
        """The first record with the log's largest timestamp; None when no record has a timestamp. [disk]"""
        return self._searched(find_max_timestamp)

    def _searched(self, search: Callable[..., FoundRecord | None], *arguments: int) -> FoundRecord | None:
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

    def segment_starts(self, now_ms: int) -> list[tuple[int, int]]:
        """(offset, time in ms): where segments begin and when each was last written, oldest first. [loop]

        Behind the last segment, unless it is empty, follows the log's end, which is written `now_ms`. So is a
        segment that was never written to.
        """
        if self._state.offline:
            raise self._state.offline_error()
        starts = [
            (max(self._state.log_start_offset, each.base_offset), now_ms if each.modified_ms < 0 else each.modified_ms)
            for each in self._state.segments
        ]
        end = [(self._state.log_end_offset, now_ms)] if self._state.segments.active.size_bytes else []
        return starts + end

    def offset_for_leader_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest epoch <= `epoch`, its end offset); (-1, -1) when not known. [loop]"""
        return self._state.leader_epochs.end_offset_for(epoch, self._state.log_end_offset)
