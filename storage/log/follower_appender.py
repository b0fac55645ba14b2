"""Appending to a log as a follower: batches as the leader stored them, with their offsets and leader epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkacompat.storage.log.appender import RollNeededError
from kafkacompat.storage.log.fetched_batches import FetchedBatch, check_fetched_batches
from kafkacompat.storage.log.rolling import PlannedSegment, must_roll
from kafkacompat.storage.log.state import LogState
from kafkacompat.storage.segment.indexes import MAX_RELATIVE_OFFSET
from kafkacompat.storage.segment.positions import OffsetPosition
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.primitives import Buffer


class FetchedAppend(NamedTuple):
    """What was appended of the fetched bytes: their first `size_bytes`.

    Without a batch, `last_offset` is the one before `first_offset`. `max_timestamp` is -1 if no record has a timestamp.
    `end` is the log's end after the append, with its position.
    """

    first_offset: int
    last_offset: int
    batch_count: int
    size_bytes: int
    max_timestamp: int
    end: OffsetPosition

    def followed_by(self, later: FetchedAppend) -> FetchedAppend:
        """Return both appends as one; `later` continues where this one ends."""
        if not self.batch_count:
            return later
        return FetchedAppend(
            self.first_offset,
            later.last_offset if later.batch_count else self.last_offset,
            self.batch_count + later.batch_count,
            self.size_bytes + later.size_bytes,
            max(self.max_timestamp, later.max_timestamp),
            later.end,
        )


class FollowerAppender:
    """Appends fetched batches; updates the log's end, its producers, its transactions and its leader epochs."""

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state

    def append_fetched(self, records: Buffer, *, leader_epoch: int, now_ms: int) -> FetchedAppend:
        """Append the whole batches of a Fetch response, by one write, as far as the active segment has room. [loop]

        `leader_epoch` is the epoch of the leader that sent them. Offsets may be missing between batches, because
        compaction removes records. A batch that is cut off at the end is left out. The caller appends the bytes after
        `size_bytes` again, after a roll.

        Raises RollNeededError if no batch fits into the active segment, and KafkaError CORRUPT_MESSAGE,
        UNSUPPORTED_FOR_MESSAGE_FORMAT, INVALID_RECORD or KAFKA_STORAGE_ERROR. After any of them the log is unchanged.
        """
        state = self._state
        if state.offline:
            raise state.offline_error()
        batches = check_fetched_batches(
            records,
            next_offset=state.log_end_offset,
            oldest_epoch=state.leader_epochs.latest,
            newest_epoch=leader_epoch,
        )
        if not batches:
            end = state.end_position()
            return FetchedAppend(end.offset, end.offset - 1, 0, 0, -1, end)
        fitting = self._take_fitting(batches, now_ms)
        size_bytes = fitting[-1].end
        active = self._write(memoryview(records)[:size_bytes], fitting, now_ms)
        last_offset = fitting[-1].header.last_offset
        state.log_end_offset = last_offset + 1
        return FetchedAppend(
            fitting[0].header.base_offset,
            last_offset,
            len(fitting),
            size_bytes,
            max(batch.header.latest_timestamp for batch in fitting),
            OffsetPosition(last_offset + 1, active.base_offset, active.size_bytes),
        )

    def _take_fitting(self, batches: Sequence[FetchedBatch], now_ms: int) -> Sequence[FetchedBatch]:
        """Return the batches, at least one, that need no new segment. Raises RollNeededError if the first one does."""
        config = self._state.config
        planned = PlannedSegment(self._state.segments.active, config.index_interval_bytes)
        for count, batch in enumerate(batches):
            header = batch.header
            # The leader's segments may have been larger, so an empty segment takes a batch of any size.
            if (
                must_roll(planned, header.size_bytes, header.last_offset, header.max_timestamp, now_ms, config)
                if planned.size_bytes
                else header.last_offset - planned.base_offset > MAX_RELATIVE_OFFSET
            ):
                if not count:
                    raise RollNeededError
                return batches[:count]
            planned.add(header, now_ms)
        return batches

    def _write(self, data: memoryview, batches: Sequence[FetchedBatch], now_ms: int) -> Segment:
        """Write the batches at the log's end without moving the end; returns their segment."""
        state = self._state
        active = state.segments.active
        position = active.size_bytes
        headers = [batch.header for batch in batches]
        try:
            active.append_batches(data, headers, now_ms, state.config.index_interval_bytes)
        except OSError as error:
            raise state.fail_write(error) from error
        next_offset = state.log_end_offset
        for batch in batches:
            header = batch.header
            if header.base_offset != next_offset and state.cleaner_offset is None:
                # The checkpoint says that gaps are no damage, as after the first compaction of a leader.
                state.cleaner_offset = state.log_start_offset
            next_offset = header.last_offset + 1
            state.recent_batches.add(header.base_offset, position + batch.start, header.size_bytes)
            if header.partition_leader_epoch != state.leader_epochs.latest:
                state.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self._note_producer(batch, active, position + batch.start)
        if state.dirty_since_ms < 0:
            state.dirty_since_ms = now_ms
        return active

    def _note_producer(self, batch: FetchedBatch, active: Segment, position: int) -> None:
        header, producers = batch.header, self._state.producer_state
        if not header.is_control:
            producers.add_batch(header, header.base_offset, (active.base_offset, position))
            return
        if batch.marker is None:
            return  # compaction emptied it, after all records of the transaction were gone
        first_offset = producers.first_open_offset(header.producer_id)
        if first_offset >= 0 and batch.marker.is_abort:
            stable_offset = producers.open.stable_offset_without(first_offset, header.last_offset)
            active.transactions.add(
                AbortedTransaction(header.producer_id, first_offset, header.last_offset, stable_offset)
            )
        producers.end_transaction(header, batch.marker.coordinator_epoch)
