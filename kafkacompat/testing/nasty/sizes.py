"""Topics that are large in one respect: a record at the size limit, and ten thousand partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.testing.nasty.contents import make_records
from kafkacompat.testing.nasty.description import ExpectedRecord, NastyTopic, NastyTopicError, describe_plain
from kafkacompat.testing.nasty.partition_writer import PartitionWriter
from kafkacompat.wire.record_batch import build_batch

if TYPE_CHECKING:
    from kafkacompat.testing.nasty.broker_access import BrokerAccess
    from kafkacompat.wire.record_batch import NewRecord

LEAST_BATCH_BYTES = 1000
MOST_PARTITIONS = 10_000


async def make_largest_record(access: BrokerAccess, name: str, batch_bytes: int) -> NastyTopic:
    """See NastyTopics.largest_record."""
    if batch_bytes < LEAST_BATCH_BYTES:
        raise NastyTopicError(f"batch_bytes={batch_bytes} is too small; choose {LEAST_BATCH_BYTES} or more")
    await access.create_topic(name, max_message_bytes=str(batch_bytes))
    writer, base_ms = await PartitionWriter.open(access, name), access.now_ms()
    records: list[ExpectedRecord] = []
    for first in (0, 10, 20):
        records += await writer.append(make_records(range(first, first + 3), base_ms))
        records += await writer.append([build_largest(base_ms + first + 3, batch_bytes)])
    records += await writer.append([build_largest(base_ms + 30, batch_bytes)])
    records += await writer.append(make_records(range(31, 34), base_ms))
    return describe_plain(name, records, {0: writer.end_offset})


def build_largest(timestamp: int, batch_bytes: int) -> NewRecord:
    """Return a record whose batch has exactly this size."""
    value_bytes = batch_bytes
    while True:
        record: NewRecord = (timestamp, b"large", b"x" * value_bytes, ())
        surplus = len(build_batch([record])) - batch_bytes
        if surplus <= 0:
            return record if not surplus else (timestamp, b"large" + b"-" * -surplus, b"x" * value_bytes, ())
        value_bytes -= surplus


async def make_many_partitions(access: BrokerAccess, name: str, partitions: int) -> NastyTopic:
    """See NastyTopics.many_partitions."""
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise NastyTopicError(f"partitions={partitions} is not valid; choose 1 to {MOST_PARTITIONS}")
    await access.create_topic(name, partitions=partitions)
    base_ms = access.now_ms()
    records: list[ExpectedRecord] = []
    filled = sorted({0, partitions // 2, partitions - 1})
    for index in filled:
        writer = await PartitionWriter.open(access, name, index)
        records += await writer.append(make_records(range(3), base_ms, word=f"partition-{index}"))
    ends = {index: 3 if index in filled else 0 for index in range(partitions)}
    return describe_plain(name, records, ends)
