"""A topic whose beginning vanishes while consumers read it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from kafkacompat.testing.nasty.contents import make_records
from kafkacompat.testing.nasty.description import ExpectedRecord, NastyTopic, NastyTopicError, describe_plain
from kafkacompat.testing.nasty.partition_writer import PartitionWriter

if TYPE_CHECKING:
    from kafkacompat.testing.nasty.broker_access import BrokerAccess, Kafka

SEGMENTS = 4
BATCH = 100
VALUE_BYTES = 1000
LEFT = 50
"""Records that `overtake` leaves: fewer than a batch, so that the log begins inside one."""


class RetentionJump:
    """A topic of four segments; `before` is what consumers see until `jump`."""

    def __init__(self, kafka: Kafka, access: BrokerAccess, before: NastyTopic) -> None:
        self.before = before
        self._latest = before
        self._kafka = kafka
        self._access = access

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.before.name

    def jump(self, offset: int | None = None) -> NastyTopic:
        """Let the log begin later, and return what consumers see from now on.

        By default retention deletes the first three segments, as with retention.bytes. With *offset* the records before it are
        deleted as by DeleteRecords, so that the log can begin inside a batch: a fetch from the log start then returns the whole
        batch, and the consumer must drop the records before the log start. A consumer whose position is before the new start
        gets OFFSET_OUT_OF_RANGE at its next fetch, and continues by its auto.offset.reset. Raises NastyTopicError if the log begins
        there or later already, or ends before *offset*.
        """
        start: int = self._kafka.call(self._jump, offset)
        self._latest = self._latest.without_records_before(start)
        return self._latest

    async def _jump(self, offset: int | None) -> int:
        writer = await PartitionWriter.open(self._access, self.name)
        log = writer.partition.log
        start_before, end_offset = log.log_start_offset, log.log_end_offset
        if offset is not None:
            if not start_before < offset <= end_offset:
                reason = f"the log of '{self.name}' has the offsets {start_before} to {end_offset}"
                raise NastyTopicError(f"the log start cannot jump to {offset}: {reason}; choose a later one of them")
            await writer.broker.replica_manager.delete_records(writer.partition, offset)
            return offset
        kept = list(log.segments)[-1]
        if kept.base_offset <= start_before:
            raise NastyTopicError(f"the log start of '{self.name}' has jumped already; create another topic")
        await self._access.alter_topic(self.name, retention_bytes=str(kept.size_bytes))
        writer.broker.housekeeping.delete_expired(writer.partition)
        return await self._access.wait_for(
            lambda: log.log_start_offset if log.log_start_offset > start_before else None,
            f"retention of '{self.name}'",
        )

    def overtake(self, records: int = 200) -> NastyTopic:
        """Append records and delete all but the last fifty, before any consumer can fetch them.

        Returns what consumers see from now on. Even a consumer that had read everything has a position before the log start
        now. Raises NastyTopicError for fewer than 100 records.
        """
        if records < BATCH:
            raise NastyTopicError(f"records={records} is too small; choose {BATCH} or more")
        after: NastyTopic = self._kafka.call(self._overtake, records)
        self._latest = after
        return after

    async def _overtake(self, records: int) -> NastyTopic:
        writer = await PartitionWriter.open(self._access, self.name)
        rows = make_records(range(records), self._access.now_ms(), word="later", size_bytes=VALUE_BYTES)
        appended: list[ExpectedRecord] = []
        # Nothing waits up to the end of the deletion: no fetch is served in between.
        for position in range(0, len(rows), BATCH):
            appended += await writer.append(rows[position : position + BATCH])
        await writer.broker.replica_manager.delete_records(writer.partition, appended[-LEFT].offset)
        return replace(
            describe_plain(self.name, appended[-LEFT:], {0: writer.end_offset}),
            log_start_offsets={0: appended[-LEFT].offset},
        )


async def make_retention_jump(access: BrokerAccess, name: str, records: int) -> NastyTopic:
    """See NastyTopics.retention_jump."""
    if records < SEGMENTS:
        raise NastyTopicError(f"records={records} is too small; choose {SEGMENTS} or more")
    await access.create_topic(name, retention_ms="-1")
    writer, base_ms = await PartitionWriter.open(access, name), access.now_ms()
    expected: list[ExpectedRecord] = []
    starts = [records * number // SEGMENTS for number in range(SEGMENTS + 1)]
    for start, end in pairwise(starts):
        if start:
            await writer.roll()
        rows = make_records(range(start, end), base_ms, size_bytes=VALUE_BYTES)
        for position in range(0, len(rows), BATCH):
            expected += await writer.append(rows[position : position + BATCH])
    return describe_plain(name, expected, {0: writer.end_offset})
