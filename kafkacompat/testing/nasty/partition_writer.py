"""Writing to one partition through its leader, with a note of the records that consumers must see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.disk import do_nothing
from kafkacompat.storage.intake.preparation import as_checked_batch, take_in
from kafkacompat.testing.nasty.description import CREATE_TIME, LOG_APPEND_TIME, ExpectedRecord
from kafkacompat.timers import now_ms
from kafkacompat.wire.record_batch import NewRecord, build_batch

if TYPE_CHECKING:
    from kafkacompat.broker import Broker
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.storage.intake.validation import CheckedBatch
    from kafkacompat.storage.log.log import AppendResult
    from kafkacompat.storage.producers.verification import Guard
    from kafkacompat.testing.nasty.broker_access import BrokerAccess
    from kafkacompat.wire.primitives import Buffer


class BatchProducer(NamedTuple):
    """The producer of a batch, and the sequence number of the batch's first record."""

    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    is_transactional: bool = False


NO_PRODUCER = BatchProducer()


class PartitionWriter:
    """Appends batches to one partition, as Produce requests to its leader do."""

    def __init__(self, broker: Broker, topic: str, index: int = 0) -> None:
        self.broker = broker
        self.topic = topic
        self.index = index

    @classmethod
    async def open(cls, access: BrokerAccess, topic: str, index: int = 0) -> PartitionWriter:
        """Return the writer of a partition, at its leader."""
        return cls(await access.find_broker_of(topic, index), topic, index)

    @property
    def partition(self) -> Partition:
        """The partition, at its leader."""
        return self.broker.replica_manager.find(self.topic, self.index)

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self.partition.log.log_end_offset

    def _now_ms(self) -> int:
        return now_ms(self.broker.housekeeping.clock)

    async def append(
        self,
        records: Sequence[NewRecord],
        *,
        codec: int = 0,
        producer: BatchProducer = NO_PRODUCER,
        guard: Guard | None = None,
    ) -> list[ExpectedRecord]:
        """Append records as one batch of format 2, and return them as consumers must see them."""
        batch = build_batch(
            records,
            codec=codec,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=producer.sequence,
            transactional=producer.is_transactional,
        )
        result = await self._append(batch, guard)
        return self.note(records, result)

    async def append_message_set(self, messages: bytes) -> AppendResult:
        """Append a message set of format 0 or 1, as a Produce request up to version 2 does."""
        at_ms = self._now_ms()
        batch = take_in(messages, self.partition.log.config, at_ms)
        assert batch is not None, "a message set is always converted"
        return await self._append(as_checked_batch(batch, at_ms), None)

    async def _append(self, batch: Buffer | CheckedBatch, guard: Guard | None) -> AppendResult:
        appended = self.partition.append_to_all(batch, self._now_ms(), guard=guard)
        return await appended if isinstance(appended, Deferred) else appended

    def note(self, records: Sequence[NewRecord], result: AppendResult) -> list[ExpectedRecord]:
        """Return appended records as consumers must see them."""
        stamped_ms = result.log_append_time_ms
        kind = CREATE_TIME if stamped_ms < 0 else LOG_APPEND_TIME
        return [
            ExpectedRecord(
                self.index,
                result.base_offset + delta,
                timestamp if stamped_ms < 0 else stamped_ms,
                key,
                value,
                tuple(headers),
                kind,
            )
            for delta, (timestamp, key, value, headers) in enumerate(records)
        ]

    async def roll(self) -> None:
        """Start a new segment, and wait until the old one is sealed, so that compaction and retention may touch it."""
        partition = self.partition
        partition.roll()
        # The disk works in order: first it makes the segment, then it seals the old one.
        for _ in range(2):
            await partition.disk.run(do_nothing)

    async def compact(self) -> None:
        """Compact the sealed segments now."""
        await self.broker.log_cleaner.compact_now(self.partition)
