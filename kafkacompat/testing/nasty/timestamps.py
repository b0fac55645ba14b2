"""Topics whose timestamps do not ascend, or are of both types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kafkacompat.storage.log_config import LONG_MAX
from kafkacompat.testing.nasty.contents import make_records
from kafkacompat.testing.nasty.description import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    ExpectedRecord,
    NastyTopic,
    TimeLookup,
    describe_plain,
)
from kafkacompat.testing.nasty.partition_writer import PartitionWriter

if TYPE_CHECKING:
    from kafkacompat.testing.nasty.broker_access import BrokerAccess

HOUR_MS = 3_600_000
IN_2100_MS = 4_102_444_800_000
CREATED_BEFORE_MS = 24 * HOUR_MS
"""How much earlier than the append the producers of `mixed_timestamp_types` stamp their records."""


async def make_out_of_order_timestamps(access: BrokerAccess, name: str) -> NastyTopic:
    """See NastyTopics.out_of_order_timestamps."""
    await access.create_topic(name, message_timestamp_after_max_ms=str(LONG_MAX), retention_ms="-1")
    writer, now_ms = await PartitionWriter.open(access, name), access.now_ms()
    # Each line is a batch; every second batch ends its segment.
    batches = [
        [now_ms, now_ms - 5, now_ms - 10, now_ms + 10],
        [now_ms - 24 * HOUR_MS, now_ms - HOUR_MS],
        [0, 1],
        [IN_2100_MS, now_ms + 1],
        [now_ms - 2 * HOUR_MS, now_ms + 20, now_ms + 20, now_ms - 2 * HOUR_MS],
    ]
    records: list[ExpectedRecord] = []
    for number, timestamps in enumerate(batches):
        rows = [
            (timestamp, f"key-{index}".encode(), f"value-{number}-{index}".encode(), ())
            for index, timestamp in enumerate(timestamps)
        ]
        records += await writer.append(rows)
        if number % 2:
            await writer.roll()
    described = describe_plain(name, records, {0: writer.end_offset})
    timestamps = sorted({0, *(record.timestamp for record in records), now_ms + 5, IN_2100_MS + 1})
    latest = max(records, key=lambda record: record.timestamp)
    return replace(
        described,
        lookups=tuple(find_by_time(records, timestamp) for timestamp in timestamps),
        max_timestamp_offsets={0: latest.offset},
    )


def find_by_time(records: Sequence[ExpectedRecord], timestamp: int) -> TimeLookup:
    """Return what a broker finds for a timestamp: the first record, by offset, that is not earlier."""
    offset = next((record.offset for record in records if record.timestamp >= timestamp), None)
    return TimeLookup(0, timestamp, offset)


async def make_mixed_timestamp_types(access: BrokerAccess, name: str) -> NastyTopic:
    """See NastyTopics.mixed_timestamp_types."""
    await access.create_topic(name)
    writer = await PartitionWriter.open(access, name)
    created_ms = access.now_ms() - CREATED_BEFORE_MS
    records: list[ExpectedRecord] = []
    for number, kind in enumerate((CREATE_TIME, LOG_APPEND_TIME) * 2):
        await access.alter_topic(name, message_timestamp_type=kind)
        for start in (10 * number, 10 * number + 5):
            records += await writer.append(make_records(range(start, start + 5), created_ms))
    return describe_plain(name, records, {0: writer.end_offset})
