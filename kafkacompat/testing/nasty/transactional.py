"""Topics whose transactions leave offsets without records."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from kafkacompat.testing.nasty.contents import make_records
from kafkacompat.testing.nasty.description import ExpectedRecord, MissingOffsets, NastyTopic
from kafkacompat.testing.nasty.partition_writer import PartitionWriter
from kafkacompat.testing.nasty.transactional_writer import TransactionalWriter, hide_aborted

if TYPE_CHECKING:
    from kafkacompat.testing.nasty.broker_access import BrokerAccess
    from kafkacompat.wire.record_batch import NewRecord

EVERY_ABORTED = 3
PLAIN_RECORDS = 10
ABORTED_VALUE_BYTES = 1000


class _Notes:
    """What has been written so far: (record, whether it is committed), and the missing offsets."""

    def __init__(self) -> None:
        self.records: list[tuple[ExpectedRecord, bool]] = []
        self.missing: list[MissingOffsets] = []

    def add(self, records: list[ExpectedRecord], *, committed: bool = True) -> None:
        self.records += [(record, committed) for record in records]
        if not committed:
            self.missing.append(hide_aborted(records))

    def describe(self, name: str, end_offset: int) -> NastyTopic:
        ordered = sorted(self.records, key=lambda noted: noted[0].offset)
        return NastyTopic(
            name,
            tuple(record for record, _ in ordered),
            tuple(record for record, is_committed in ordered if is_committed),
            {0: 0},
            {0: end_offset},
            tuple(sorted(self.missing, key=lambda gap: gap.first)),
        )


async def make_transaction_gaps(access: BrokerAccess, name: str, transactions: int) -> NastyTopic:
    """See NastyTopics.transaction_gaps."""
    await access.create_topic(name)
    writer, notes, base_ms = await PartitionWriter.open(access, name), _Notes(), access.now_ms()
    first, second = [await TransactionalWriter.start(access, writer, f"{name}-{letter}") for letter in "ab"]
    numbers = count()

    def next_record() -> list[NewRecord]:
        return make_records([next(numbers)], base_ms)

    for number in range(transactions):
        committed = number % EVERY_ABORTED != EVERY_ABORTED - 1
        notes.add(await first.send(next_record()), committed=committed)
        notes.missing.append(await (first.commit() if committed else first.abort()))
    # Two transactions overlap, and a record belongs to none: the first begins first and ends last.
    notes.add(await first.send(next_record()))
    notes.add(await second.send(next_record()), committed=False)
    notes.add(await writer.append(next_record()))
    notes.add(await first.send(next_record()))
    notes.missing.append(await second.abort())
    notes.missing.append(await first.commit())
    return notes.describe(name, writer.end_offset)


async def make_aborted_tail(access: BrokerAccess, name: str, transactions: int, records: int) -> NastyTopic:
    """See NastyTopics.aborted_tail."""
    await access.create_topic(name)
    writer, notes, base_ms = await PartitionWriter.open(access, name), _Notes(), access.now_ms()
    notes.add(await writer.append(make_records(range(PLAIN_RECORDS), base_ms)))
    producer = await TransactionalWriter.start(access, writer, f"{name}-a")
    for number in range(transactions):
        first = PLAIN_RECORDS + number * records
        rows = make_records(range(first, first + records), base_ms, word="aborted", size_bytes=ABORTED_VALUE_BYTES)
        for start in range(0, records, 100):
            notes.add(await producer.send(rows[start : start + 100]), committed=False)
        notes.missing.append(await producer.abort())
    return notes.describe(name, writer.end_offset)
