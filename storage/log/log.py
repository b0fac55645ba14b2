"""One partition's log: segments in a folder, with Kafka's file names and formats.

Operations are of two kinds. A *loop* operation touches memory and the page cache only and may be called on the
reactor thread. A *disk* operation may wait for the disk and belongs on the log directory's own thread; unless
it says otherwise it may run while loop operations go on.

Once `offline` is set, by a write that could not be taken back, a failed sync or a broken invariant,
appends, reads and disk operations raise KafkaError KAFKA_STORAGE_ERROR; the log has to be opened again.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.intake.validation import CheckedBatch, check_batch
from kafkacompat.storage.log.compaction import LogCompaction
from kafkacompat.storage.log.maintenance import LogMaintenance
from kafkacompat.storage.log.recovery import empty_log, load_log
from kafkacompat.storage.log.rolling import must_roll
from kafkacompat.storage.log.state import may_pass
from kafkacompat.storage.log.transactions import LogTransactions
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.state import StoredBatch
from kafkacompat.storage.producers.transaction_marker import Marker, marker_batch
from kafkacompat.storage.producers.verification import Guard
from kafkacompat.storage.segment.reader import FoundRecord, OffsetPosition
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_file import SegmentCache
from kafkacompat.storage.segment.segment_files import TornSegmentError
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import LENGTH_END, LOG_APPEND_TIME, BatchHeader

__all__ = ["AppendResult", "FoundRecord", "Log", "OffsetPosition", "RollNeededError"]

_PATCHED = Struct(">qii")
"""What the log sets in a batch's header: base offset, length, leader epoch."""


class RollNeededError(Exception):
    """The batch has to go to a new segment: prepare one, roll, and append again. Nothing has changed."""


class AppendResult(NamedTuple):
    """What became of a batch.

    `log_append_time_ms` is -1 on CreateTime topics; for a duplicate, which was not stored again, it is the
    stored batch's time and the offsets are those it got then. `end` is the log's end after the append, with
    its position: the high watermark of a partition with one replica.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool
    end: OffsetPosition


class Log(LogTransactions, LogMaintenance, LogCompaction):
    """One partition's log."""

    @classmethod
    def create(
        cls,
        files: Files,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        *,
        cache: SegmentCache | None = None,
    ) -> Log:
        """Make the partition's folder with an empty log in it; `make_durable` and the first flush put it on the disk. [disk]"""
        cache = SegmentCache() if cache is None else cache
        files.make_directory(directory)
        log = cls(files, directory, topic, partition, topic_id, config, empty_log(files, directory, cache), cache)
        log.note_new()
        return log

    @classmethod
    def open(
        cls,
        files: Files,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        *,
        clean_shutdown: bool,
        recovery_point: int,
        log_start_offset: int,
        now_ms: int,
        cleaner_offset: int | None = None,
        cache: SegmentCache | None = None,
    ) -> Log:
        """Open a log that is there, with recovery unless the last shutdown was clean. [disk]

        `recovery_point`, `log_start_offset` and `cleaner_offset` are the directory's checkpoints for it; when it has none, 0,
        0 and None.
        """
        cache = SegmentCache() if cache is None else cache
        loaded = load_log(
            files,
            directory,
            config,
            clean_shutdown=clean_shutdown,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            cleaner_offset=cleaner_offset or 0,
            now_ms=now_ms,
            cache=cache,
        )
        log = cls(files, directory, topic, partition, topic_id, config, loaded, cache)
        if cleaner_offset is not None:
            # What comes in place of what was lost was never compacted: an old value would outlive a new tombstone.
            log.cleaner_offset = min(cleaner_offset, log.log_end_offset)
        # A process that was killed may have made files whose names are not on the disk yet.
        log._folder_is_synced = clean_shutdown
        return log

    # --- appending ---

    def append(
        self,
        records: Buffer | CheckedBatch,
        *,
        leader_epoch: int,
        now_ms: int,
        from_client: bool,
        guard: Guard | None = None,
    ) -> AppendResult:
        """Append exactly one batch of format version 2 as leader; one that was checked before is not checked again. [loop]

        For `guard` see ProducerState. Raises RollNeededError when a new segment is due, and KafkaError with Kafka's codes:
        INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP,
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR.
        After any of them the log is as it was before.
        """
        if self.offline:
            raise self._offline_error()
        if not isinstance(records, CheckedBatch):
            records = check_batch(records, self.config, now_ms, from_client)
        header = records.header
        size_bytes = header.length + LENGTH_END
        if size_bytes > self.config.segment_bytes:
            detail = f"a batch of {size_bytes} bytes is larger than segment.bytes={self.config.segment_bytes}"
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, detail)
        if header.producer_id >= 0:
            stored = self.producer_state.check(header, from_client, guard)
            if stored is not None:
                return self._duplicate(stored)
        active, position = self._write(records, leader_epoch, now_ms)
        if header.producer_id >= 0:
            self.producer_state.add(header, self.log_end_offset, (active.base_offset, position))
        return self._appended(header, active)

    def append_marker(self, marker: Marker, *, leader_epoch: int, now_ms: int) -> AppendResult:
        """Append the end of a transaction; one that repeats the last is harmless. [loop]

        Raises as `append`, of Kafka's codes INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED and KAFKA_STORAGE_ERROR.
        """
        if self.offline:
            raise self._offline_error()
        self.producer_state.check_marker(marker)
        batch = marker_batch(marker, self.config, now_ms)
        active, _ = self._write(batch, leader_epoch, now_ms)
        header = batch.header._replace(base_offset=self.log_end_offset)
        first_offset = self.producer_state.first_open_offset(marker.producer_id)
        if first_offset >= 0 and not marker.is_commit:
            stable_offset = self.producer_state.open.stable_offset_without(first_offset, header.base_offset)
            active.note_aborted(AbortedTransaction(marker.producer_id, first_offset, header.base_offset, stable_offset))
        self.producer_state.end_transaction(header, marker.coordinator_epoch)
        return self._appended(header, active)

    def _write(self, batch: CheckedBatch, leader_epoch: int, now_ms: int) -> tuple[Segment, int]:
        """Write a batch at the log's end, which stays where it is; returns in which segment, and where."""
        header, config, active = batch.header, self.config, self.segments.active
        size_bytes = header.length + LENGTH_END
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if must_roll(active, size_bytes, last_offset, header.max_timestamp, now_ms, config):
            raise RollNeededError
        position = active.size_bytes
        patched = (_PATCHED.pack(base_offset, header.length, leader_epoch), *batch.parts)
        try:
            active.append(patched, size_bytes, last_offset, header.max_timestamp, now_ms, config.index_interval_bytes)
        except OSError as error:
            raise self._write_failed(error) from error
        self._recent.add(base_offset, position, size_bytes)
        if leader_epoch != self.leader_epochs.latest:
            self.leader_epochs.assign(leader_epoch, base_offset)
        if self._dirty_since_ms < 0:
            self._dirty_since_ms = now_ms
        return active, position

    def _appended(self, header: BatchHeader, active: Segment) -> AppendResult:
        """Let the log end behind what was written: everything else that is known of it comes first."""
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        self.log_end_offset = end_offset = last_offset + 1
        return AppendResult(
            base_offset,
            last_offset,
            header.max_timestamp if header.attributes & LOG_APPEND_TIME else -1,
            self.log_start_offset,
            False,
            OffsetPosition(end_offset, active.base_offset, active.size_bytes),
        )

    def _duplicate(self, stored: StoredBatch) -> AppendResult:
        return AppendResult(
            stored.base_offset, stored.last_offset, stored.timestamp, self.log_start_offset, True, self.end_position()
        )

    def _write_failed(self, error: OSError) -> KafkaError:
        self.offline |= isinstance(error, TornSegmentError) or not may_pass(error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"writing to {self.directory} failed: {describe_error(error)}")
