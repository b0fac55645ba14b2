"""Filtering batches: which records stay, and rewriting the batch without the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafkacompat.storage.compaction.job import CleaningJob
from kafkacompat.storage.compaction.offset_map import OffsetMap
from kafkacompat.storage.compaction.transaction_tracking import TransactionTracker
from kafkacompat.storage.intake.validation import list_codec_levels
from kafkacompat.storage.log_config import LONG_MAX
from kafkacompat.storage.producers.producer import PRODUCER_ENTRY
from kafkacompat.wire.compression import compress
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    assemble_batch,
    read_body,
)
from kafkacompat.wire.record_slices import moved_record, slice_in_turns, timestamp_delta

_OF_EMPTY = LOG_APPEND_TIME | TRANSACTIONAL | CONTROL
"""Attributes that a batch without records keeps."""


class _Kept(NamedTuple):
    """The records of a batch that stay: (start, end) of each in the body, and whether one is a tombstone."""

    slices: list[tuple[int, int]]
    has_tombstones: bool


class BatchFilter:
    """Filters the batches of a log in order, and counts `records_read`, `records_kept` and `keyless` records.

    ``end_turn`` is called after a few records each.
    """

    def __init__(
        self,
        job: CleaningJob,
        offset_map: OffsetMap,
        transactions: TransactionTracker,
        end_turn: Callable[[], object],
    ) -> None:
        self._job = job
        self._map = offset_map
        self._transactions = transactions
        self._end_turn = end_turn
        self._levels = list_codec_levels(job.config)
        self._horizon_ms = job.now_ms + job.config.delete_retention_ms
        self._last_offsets: dict[int, int] = {}
        self._marker_epochs: dict[int, int] = {}
        """Epochs of the producers that have a marker but no batch."""
        for producer_id, epoch, _, last_offset, *_ in PRODUCER_ENTRY.iter_unpack(job.producers):
            if last_offset >= 0:
                self._last_offsets[producer_id] = last_offset
            else:
                self._marker_epochs[producer_id] = epoch
        self.records_read = self.records_kept = self.keyless = 0

    def filter_batch(self, header: BatchHeader, batch: Buffer, *, must_stay: bool) -> Buffer | None:
        """Return the batch itself, one with fewer records, or None if none stays.

        A batch that `must_stay`, or has its producer's last sequence number, stays even without records.
        Raises MalformedError.
        """
        self.records_read += header.record_count
        of_nothing = header.is_control and self._transactions.is_marker_without_batches(header, batch)
        if of_nothing:
            horizon_ms = header.delete_horizon_ms
            gone = horizon_ms is not None and horizon_ms <= self._job.now_ms
        else:
            gone = not header.is_control and self._transactions.is_aborted(header)
        if gone or not header.record_count:
            kept, body = _Kept([], False), b""
        else:
            body = bytes(read_body(batch, header, self._job.config.max_decompressed_bytes))
            kept = self._keep_all(body, header) if header.is_control else self._keep_last_of_keys(body, header)
        self.records_kept += len(kept.slices)
        if not kept.slices:
            if not (must_stay or self._is_last_of_producer(header)):
                return None
            return batch if not header.record_count else _empty_batch(header)
        needs_horizon = (kept.has_tombstones or of_nothing) and self._may_have_horizon(header, body, kept.slices)
        if len(kept.slices) == header.record_count and not needs_horizon:
            return batch
        return self._rewrite_batch(header, body, kept.slices, needs_horizon)

    def _keep_all(self, body: bytes, header: BatchHeader) -> _Kept:
        turns = slice_in_turns(body, header.record_count)
        return _Kept([(start, end) for turn in turns for start, end, *_ in turn], False)

    def _keep_last_of_keys(self, body: bytes, header: BatchHeader) -> _Kept:
        horizon_ms, base_offset = header.delete_horizon_ms, header.base_offset
        tombstones_stay = horizon_ms is None or self._job.now_ms < horizon_ms
        find, latest_offset = self._map.get, self._map.latest_offset
        slices, has_tombstones = [], False
        for turn in slice_in_turns(body, header.record_count):
            for start, end, delta, key, has_value in turn:
                offset = base_offset + delta
                if offset <= latest_offset:
                    if key is None:
                        self.keyless += 1
                        continue
                    if not (has_value or tombstones_stay) or offset < find(key):
                        continue
                slices.append((start, end))
                has_tombstones |= not has_value
            self._end_turn()
        return _Kept(slices, has_tombstones)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        if header.last_offset == self._last_offsets.get(header.producer_id):
            return True
        return header.is_control and header.producer_epoch == self._marker_epochs.get(header.producer_id)

    def _may_have_horizon(self, header: BatchHeader, body: bytes, slices: list[tuple[int, int]]) -> bool:
        """Return whether the batch lacks a delete horizon, and it and all deltas to it fit 64 bits.

        They do not with the largest delete.retention.ms; then tombstones stay.
        """
        if header.delete_horizon_ms is not None or self._horizon_ms > LONG_MAX:
            return False
        earliest = header.base_timestamp + min(timestamp_delta(body, start) for start, _ in slices)
        return self._horizon_ms - earliest <= LONG_MAX

    def _rewrite_batch(
        self, header: BatchHeader, body: bytes, slices: list[tuple[int, int]], needs_horizon: bool
    ) -> bytes:
        base_timestamp, attributes = header.base_timestamp, header.attributes
        if needs_horizon:
            base_timestamp = self._horizon_ms
            attributes |= DELETE_HORIZON
        shift_ms = header.base_timestamp - base_timestamp
        max_timestamp = header.max_timestamp
        if not header.is_log_append_time:
            max_timestamp = header.base_timestamp + max(timestamp_delta(body, start) for start, _ in slices)
        if shift_ms:
            records = b"".join([moved_record(body, start, end, shift_ms) for start, end in slices])
        else:
            records = b"".join([body[start:end] for start, end in slices])
        changed = header._replace(
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            record_count=len(slices),
        )
        return assemble_batch(changed, compress(header.codec, records, self._levels.get(header.codec)))


def _empty_batch(header: BatchHeader) -> bytes:
    """Return the batch without records; it keeps offsets, producer and maximum timestamp."""
    return assemble_batch(
        header._replace(attributes=header.attributes & _OF_EMPTY, base_timestamp=-1, record_count=0), b""
    )
