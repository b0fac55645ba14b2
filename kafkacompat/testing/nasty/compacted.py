"""Topics that the broker's log cleaner has compacted."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kafkacompat.testing.nasty.contents import make_keyed
from kafkacompat.testing.nasty.description import ExpectedRecord, MissingOffsets, NastyTopic, describe_plain
from kafkacompat.testing.nasty.partition_writer import BatchProducer, PartitionWriter
from kafkacompat.testing.nasty.transactional_writer import TransactionalWriter
from kafkacompat.wire.compression import Codec

if TYPE_CHECKING:
    from kafkacompat.testing.nasty.broker_access import BrokerAccess

COMPACTED = "compacted away"
ROUNDS, KEYS_A_ROUND = 10, 100


async def make_compacted_holes(access: BrokerAccess, name: str) -> NastyTopic:
    """See NastyTopics.compacted_holes."""
    await access.create_topic(name, cleanup_policy="compact")
    writer, base_ms = await PartitionWriter.open(access, name), access.now_ms()
    written: list[ExpectedRecord] = []
    # Later batches replace all records of the first batch, and those at the beginning of the second.
    written += await writer.append(make_keyed(range(10), base_ms, "first"))
    written += await writer.append(make_keyed(range(10), base_ms + 1, "second"))
    # One is replaced in the middle of this batch, and one at its end.
    third = make_keyed([*range(5), *range(10, 15)], base_ms + 2, "third")
    written += await writer.append(third, codec=Codec.GZIP)
    written += await writer.append([(base_ms + 3, b"key-5", None, [])])
    written += await writer.append(make_keyed([2, 14], base_ms + 4, "fourth"))
    # Batch after batch vanishes: a fetch at an offset in here gets records that begin hundreds of offsets later.
    for number in range(ROUNDS):
        keys = range(100, 100 + KEYS_A_ROUND)
        written += await writer.append(make_keyed(keys, base_ms + 5 + number, f"round-{number}"))
    await writer.roll()
    await writer.compact()
    kept = keep_last_of_keys(written)
    end_of_compacted = writer.end_offset
    # The active segment is never compacted: its keys repeat.
    kept += await writer.append(make_keyed([1, 1, 2], base_ms + 100, "active"))
    missing = explain_gaps(kept, end_of_compacted, COMPACTED)
    return describe_plain(name, kept, {0: writer.end_offset}, missing)


async def make_empty_batch(access: BrokerAccess, name: str) -> NastyTopic:
    """See NastyTopics.empty_batch."""
    await access.create_topic(name, cleanup_policy="compact")
    writer, base_ms = await PartitionWriter.open(access, name), access.now_ms()
    producer_id = await writer.broker.controller.producer_ids.next()
    written = await writer.append(make_keyed(range(3), base_ms, "before"))
    idempotent = BatchProducer(producer_id, 0, 0)
    emptied = await writer.append(make_keyed(range(3, 8), base_ms + 1, "emptied"), producer=idempotent)
    written += await writer.append(make_keyed(range(3, 10), base_ms + 2, "after"))
    # The end: an aborted transaction, whose records the cleaner removes as well.
    transactional = await TransactionalWriter.start(access, writer, f"{name}-a")
    aborted = await transactional.send(make_keyed(range(5), base_ms + 3, "aborted"))
    marker = await transactional.abort()
    await writer.roll()
    await writer.compact()
    missing = [
        _cover(emptied, "a batch without records, kept for the sequence number of its producer"),
        _cover(
            aborted, "a batch of an aborted transaction without records, kept for the sequence number of its producer"
        ),
        marker,
    ]
    return describe_plain(name, written, {0: writer.end_offset}, missing)


def keep_last_of_keys(records: Iterable[ExpectedRecord]) -> list[ExpectedRecord]:
    """Return what compaction leaves of records in the order of their offsets: the last one of each key."""
    last = {record.key: record for record in records}
    return sorted(last.values(), key=lambda record: record.offset)


def explain_gaps(kept: Collection[ExpectedRecord], end_offset: int, reason: str) -> list[MissingOffsets]:
    """Return the gaps between records up to *end_offset*, from offset 0 on."""
    gaps, expected = [], 0
    for offset in [*(record.offset for record in kept if record.offset < end_offset), end_offset]:
        if offset > expected:
            gaps.append(MissingOffsets(0, expected, offset - 1, reason))
        expected = offset + 1
    return gaps


def _cover(records: list[ExpectedRecord], reason: str) -> MissingOffsets:
    return MissingOffsets(0, records[0].offset, records[-1].offset, reason)
