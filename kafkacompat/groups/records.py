"""The kinds of records in `__consumer_offsets`, in Kafka's own format.

The int16 that a key begins with says what the record is about. Kafka's formatters and DumpLogSegments read these records,
and this broker reads Kafka's. Share and streams groups are not served; their kinds are not in the table.
"""

from __future__ import annotations

from typing import TypeAlias

from kafkacompat.coordination import record_format
from kafkacompat.coordination.record_format import split_prefix
from kafkacompat.groups.classic.records import GROUP_METADATA_TYPE, GroupMetadataKey, GroupMetadataValue
from kafkacompat.groups.consumer.records import VALUE_TYPES, ConsumerGroupRecordKey
from kafkacompat.groups.offset_records import (
    OFFSET_COMMIT_TYPE,
    OLD_OFFSET_COMMIT_TYPE,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.schema import Message

RecordKey: TypeAlias = "OffsetCommitKey | GroupMetadataKey | ConsumerGroupRecordKey"

KINDS: dict[int, tuple[type[RecordKey], type[Message]]] = {
    OLD_OFFSET_COMMIT_TYPE: (OffsetCommitKey, OffsetCommitValue),
    OFFSET_COMMIT_TYPE: (OffsetCommitKey, OffsetCommitValue),
    GROUP_METADATA_TYPE: (GroupMetadataKey, GroupMetadataValue),
    **{key.TYPE: (key, value) for key, value in VALUE_TYPES.items()},
}
"""By the int16 of a key: the key and its value."""


def read_key(data: Buffer) -> RecordKey | None:
    """Read a record's key; None for a kind that is not served here. Raises MalformedError."""
    kind, rest = split_prefix(data)
    return record_format.decode_key(KINDS[kind][0], rest) if kind in KINDS else None
