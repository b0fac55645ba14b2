"""A topic written by producers of three ages: message formats 0, 1 and 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.testing.nasty.contents import make_records
from kafkacompat.testing.nasty.description import ExpectedRecord, NastyTopic, describe_plain
from kafkacompat.testing.nasty.partition_writer import PartitionWriter
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.message_set import NO_TIMESTAMP, make_entry_writer, wrap_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkacompat.testing.nasty.broker_access import BrokerAccess
    from kafkacompat.wire.record_batch import NewRecord

BATCH = 5


async def make_mixed_formats(access: BrokerAccess, name: str) -> NastyTopic:
    """See NastyTopics.mixed_formats."""
    await access.create_topic(name)
    writer, base_ms = await PartitionWriter.open(access, name), access.now_ms()
    records: list[ExpectedRecord] = []
    for start in (0, 5 * BATCH):
        for number, (magic, codec) in enumerate(((0, 0), (0, Codec.GZIP), (1, 0), (1, Codec.GZIP))):
            first = start + number * BATCH
            rows = make_records(range(first, first + BATCH), base_ms)
            result = await writer.append_message_set(build_message_set(rows, magic, codec))
            stored = rows if magic else [(NO_TIMESTAMP, key, value, headers) for _, key, value, headers in rows]
            records += writer.note(stored, result)
        first = start + 4 * BATCH
        rows = make_records(range(first, first + BATCH), base_ms)
        with_headers = [(timestamp, key, value, (("format", b"2"),)) for timestamp, key, value, _ in rows]
        records += await writer.append(with_headers)
    return describe_plain(name, records, {0: writer.end_offset})


def build_message_set(records: Sequence[NewRecord], magic: int, codec: int) -> bytes:
    """Return records as a message set of an old format, in one compressed message if there is a *codec*."""
    write = make_entry_writer(magic, 0)
    messages = b"".join(write(index, timestamp, key, value) for index, (timestamp, key, value, _) in enumerate(records))
    if not codec:
        return messages
    return wrap_messages(magic, codec, len(records) - 1, max(record[0] for record in records), messages)
