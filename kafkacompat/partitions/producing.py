"""Appending the batches of one Produce request: at once, or in later turns of the reactor where that takes long.

The batches of a request are appended in the request's order. A batch is late when it takes long to check, when the
request's turn is over, or when a batch before it is late. Late batches are appended one after the other: each waits for
a turn, or for the worker process that checks it. Requests of other connections are served in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.partitions.append_queue import fire_outcome
from kafkacompat.storage.intake.preparation import as_checked_batch, convert_messages_at_once
from kafkacompat.storage.intake.validation import TooLongForTurnError, check_batch
from kafkacompat.timers import TURN_SECONDS, next_turn, now_ms
from kafkacompat.wire.conversion import is_message_set
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import (
    ATTRIBUTES_POSITION,
    HEADER_SIZE,
    MAGIC_V2,
    TRANSACTIONAL,
    BatchHeader,
    read_header,
)

if TYPE_CHECKING:
    from kafkacompat.conversion import Conversions
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.partitions.partition_appender import Appended
    from kafkacompat.storage.log.log import AppendResult
    from kafkacompat.storage.producers.verification import Guard
    from kafkacompat.timers import Clock
    from kafkacompat.wire.primitives import Buffer

PartitionLookup: TypeAlias = "Callable[[str | bytes, int], Partition]"


@dataclass(slots=True)
class _LateBatch:
    """A batch or a message set that waits; ``needs_worker_process`` says that it takes long to check."""

    partition: Partition
    records: Buffer
    guard: Guard | None
    needs_worker_process: bool
    result: Deferred[AppendResult] = field(default_factory=Deferred)


class RequestAppends:
    """The appends of one request.

    ``find`` returns the partition of a topic's name and an index, or raises KafkaError. ``message_set_bytes`` is the
    size of all records in the request, where its version allows message sets; 0 where it allows batches only.
    """

    __slots__ = ("_clock", "_conversions", "_find", "_late", "_message_set_bytes", "_now_ms", "_turn_ends")

    def __init__(self, find: PartitionLookup, conversions: Conversions, clock: Clock, message_set_bytes: int) -> None:
        self._find = find
        self._conversions = conversions
        self._clock = clock
        self._message_set_bytes = message_set_bytes
        self._late: list[_LateBatch] = []
        self._begin_turn()

    @property
    def has_late(self) -> bool:
        """Whether a batch is late, so that `append_late` has to be called."""
        return bool(self._late)

    def append(self, partition: Partition, records: Buffer, guard: Guard | None) -> Appended:
        """Append one batch or message set; a late one's Deferred fires after `append_late`.

        A batch that begins a transaction needs its `guard`. Raises KafkaError for a batch that is rejected at once.
        """
        needs_worker_process = False
        if not self._late and self._clock.seconds() < self._turn_ends:
            try:
                return self._append_at_once(partition, records, guard)
            except TooLongForTurnError:
                needs_worker_process = True
        late = _LateBatch(partition, records, guard, needs_worker_process)
        self._late.append(late)
        return late.result

    def _append_at_once(self, partition: Partition, records: Buffer, guard: Guard | None) -> Appended:
        config, at_ms = partition.state.log.state.config, self._now_ms
        if self._message_set_bytes and is_message_set(records):
            batch = convert_messages_at_once(records, config, at_ms, self._message_set_bytes)
        else:
            batch = check_batch(records, config, at_ms, from_client=True, at_once=True)
        return partition.append(batch, at_ms, guard=guard)

    def append_late(self) -> None:
        """Begin to append the late batches."""
        if self._late:
            Deferred.fromCoroutine(self._append_late())

    async def _append_late(self) -> None:
        for late in self._late:
            try:
                fire_outcome(late.result, await self._append_in_turn(late))
            except Exception as problem:
                late.result.errback(problem)

    async def _append_in_turn(self, late: _LateBatch) -> Appended:
        if not late.needs_worker_process:
            if self._clock.seconds() >= self._turn_ends:
                await next_turn(self._clock)
                self._begin_turn()
            try:
                return self._append_at_once(self._find_existing_partition(late.partition), late.records, late.guard)
            except TooLongForTurnError:
                pass
        batch = await self._conversions.check_and_prepare(late.records, late.partition.log.config, self._now_ms)
        self._begin_turn()
        partition = self._find_existing_partition(late.partition)
        return partition.append(as_checked_batch(batch, self._now_ms), self._now_ms, guard=late.guard)

    def _find_existing_partition(self, partition: Partition) -> Partition:
        """Return the partition; raise KafkaError if it was deleted meanwhile or the broker closes its logs."""
        self._conversions.check_open()
        current = self._find(partition.topic, partition.index)
        if current is not partition:
            detail = f"{partition.topic} was deleted, and created again, before its batch could be appended"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, detail)
        return current

    def _begin_turn(self) -> None:
        self._now_ms = now_ms(self._clock)
        self._turn_ends = self._clock.seconds() + TURN_SECONDS


def any_is_transactional(batches: Iterable[Buffer]) -> bool:
    """Return whether any of these batches belongs to a transaction; message sets never do."""
    for records in batches:
        is_marked = len(records) > ATTRIBUTES_POSITION and records[ATTRIBUTES_POSITION] & TRANSACTIONAL
        if is_marked and not is_message_set(records):
            return True
    return False


def transactional_header(records: Buffer | None) -> BatchHeader | None:
    """Return the header of a batch that belongs to a transaction; None for every other batch, and for message sets."""
    if records is None or len(records) < HEADER_SIZE:
        return None
    header = read_header(records)
    is_wanted = header.magic == MAGIC_V2 and header.is_transactional and header.producer_id >= 0
    return header if is_wanted else None
