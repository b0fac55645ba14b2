"""Appending to a log, as the leader of its partition."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from kafkacompat.storage.intake.validation import CheckedBatch, check_batch
from kafkacompat.storage.log.rolling import must_roll
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.producers.producer import StoredBatch
from kafkacompat.storage.producers.transaction_marker import Marker, build_marker_batch
from kafkacompat.storage.producers.verification import Guard
from kafkacompat.storage.segment.positions import OffsetPosition
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import LENGTH_END, LOG_APPEND_TIME, BatchHeader

_PATCHED = Struct(">qii")
"""The fields of a batch's header that the log sets: base offset, length, leader epoch."""


class RollNeededError(Exception):
    """The batch needs a new segment: prepare one, roll, and append again. Nothing has changed."""


class AppendResult(NamedTuple):
    """Offsets of an appended batch.

    `log_append_time_ms` is -1 on CreateTime topics. A duplicate is not stored again: its offsets and time are those of
    the stored batch. `end` is the log's end after the append, with its position.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool
    end: OffsetPosition


class LogAppender:
    """Appends batches and markers; updates the log's end, its producers and its leader epochs."""

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state

    def append(
        self,
        records: Buffer | CheckedBatch,
        *,
        leader_epoch: int,
        now_ms: int,
        from_client: bool,
        guard: Guard | None = None,
    ) -> AppendResult:
        """Append exactly one batch of format version 2 as leader; a CheckedBatch is not checked again. [loop]

        For `guard` see ProducerState. Raises RollNeededError if a new segment is due, and KafkaError with Kafka's codes:
        INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP,
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR.
        After any of them the log is unchanged.
        """
        state = self._state
        if state.offline:
            raise state.offline_error()
        if not isinstance(records, CheckedBatch):
            records = check_batch(records, state.config, now_ms, from_client)
        header = records.header
        size_bytes = header.length + LENGTH_END
        if size_bytes > state.config.segment_bytes:
            detail = f"a batch of {size_bytes} bytes is larger than segment.bytes={state.config.segment_bytes}"
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, detail)
        if header.producer_id >= 0:
            stored = state.producer_state.check_batch(header, from_client, guard)
            if stored is not None:
                return self._duplicate(stored)
        active, position = self._write(records, leader_epoch, now_ms)
        if header.producer_id >= 0:
            state.producer_state.add_batch(header, state.log_end_offset, (active.base_offset, position))
        return self._finish_append(header, active)

    def append_marker(self, marker: Marker, *, leader_epoch: int, now_ms: int) -> AppendResult:
        """Append the marker that ends a transaction; repeating the last one is harmless. [loop]

        Raises RollNeededError, and KafkaError INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED or
        KAFKA_STORAGE_ERROR.
        """
        state = self._state
        if state.offline:
            raise state.offline_error()
        state.producer_state.check_marker(marker)
        batch = build_marker_batch(marker, state.config, now_ms)
        active, _ = self._write(batch, leader_epoch, now_ms)
        header = batch.header._replace(base_offset=state.log_end_offset)
        first_offset = state.producer_state.first_open_offset(marker.producer_id)
        if first_offset >= 0 and not marker.is_commit:
            stable_offset = state.producer_state.open.stable_offset_without(first_offset, header.base_offset)
            active.transactions.add(
                AbortedTransaction(marker.producer_id, first_offset, header.base_offset, stable_offset)
            )
        state.producer_state.end_transaction(header, marker.coordinator_epoch)
        return self._finish_append(header, active)

    def _write(self, batch: CheckedBatch, leader_epoch: int, now_ms: int) -> tuple[Segment, int]:
        """Write a batch at the log's end without moving the end; returns its segment and position."""
        state = self._state
        header, config, active = batch.header, state.config, state.segments.active
        size_bytes = header.length + LENGTH_END
        base_offset = state.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if must_roll(active, size_bytes, last_offset, header.max_timestamp, now_ms, config):
            raise RollNeededError
        position = active.size_bytes
        patched = (_PATCHED.pack(base_offset, header.length, leader_epoch), *batch.parts)
        try:
            active.append(patched, size_bytes, last_offset, header.max_timestamp, now_ms, config.index_interval_bytes)
        except OSError as error:
            raise state.fail_write(error) from error
        state.recent_batches.add(base_offset, position, size_bytes)
        if leader_epoch != state.leader_epochs.latest:
            state.leader_epochs.assign(leader_epoch, base_offset)
        if state.dirty_since_ms < 0:
            state.dirty_since_ms = now_ms
        return active, position

    def _finish_append(self, header: BatchHeader, active: Segment) -> AppendResult:
        """Move the log's end past the written batch, as the last step of an append."""
        state = self._state
        base_offset = state.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        state.log_end_offset = end_offset = last_offset + 1
        return AppendResult(
            base_offset,
            last_offset,
            header.max_timestamp if header.attributes & LOG_APPEND_TIME else -1,
            state.log_start_offset,
            False,
            OffsetPosition(end_offset, active.base_offset, active.size_bytes),
        )

    def _duplicate(self, stored: StoredBatch) -> AppendResult:
        return AppendResult(
            stored.base_offset,
            stored.last_offset,
            stored.timestamp,
            self._state.log_start_offset,
            True,
            self._state.end_position(),
        )
