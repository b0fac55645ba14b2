"""The reading side of a log."""

from __future__ import annotations

from kafkacompat.storage.log_state import PASSING_ERRORS, LogState
from kafkacompat.storage.reader import FoundRecord, OffsetPosition, find_max_timestamp, find_timestamp, read_region
from kafkacompat.storage.segment_file import FileRegion
from kafkacompat.wire.errors import ErrorCode, KafkaError


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
        be cut. None when there is nothing to read, or not enough room for a batch. The caller releases the region.

        Raises KafkaError OFFSET_OUT_OF_RANGE outside [log_start_offset, log_end_offset], and, unless `may_block`,
        ColdDataError when finding the place would wait for the disk: then call `warm` and read again.
        """
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
            return read_region(self.segments, self._recent, offset, max_bytes, upper, at_least_one_batch, may_block)
        except OSError as error:
            self.offline = error.errno not in PASSING_ERRORS
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"reading {self.directory} failed: {error}") from error

    def warm(self, offset: int) -> None:
        """Bring what finding `offset` takes into memory. [disk]"""
        region = self.read(offset, 0)
        if region is not None:
            region.release()

    def offset_for_timestamp(self, timestamp: int) -> FoundRecord | None:
        """The first record that is no earlier than `timestamp` (ms); None when all are earlier. [disk]"""
        with self._disk_operation(repeatable=True):
            return find_timestamp(self.segments, timestamp, self.log_start_offset, self.config.max_decompressed_bytes)

    def max_timestamp(self) -> FoundRecord | None:
        """The first record with the log's largest timestamp; None when no record has a timestamp. [disk]"""
        with self._disk_operation(repeatable=True):
            return find_max_timestamp(self.segments, self.config.max_decompressed_bytes)

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
