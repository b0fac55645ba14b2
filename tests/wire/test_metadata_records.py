"""The records of Kafka's controllers."""

from __future__ import annotations

import pytest

from kafkacompat.wire.metadata_records import (
    RECORD_TYPES,
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    read_metadata_record,
    write_metadata_record,
)
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.schema import Message

TOPIC_ID = bytes(range(16))


@pytest.mark.parametrize(
    ("record", "version"),
    [
        (PartitionRecord(partition_id=1, topic_id=TOPIC_ID, replicas=[1], isr=[1], leader=1, leader_epoch=4), 0),
        (PartitionRecord(partition_id=1, replicas=[1], directories=[TOPIC_ID], last_known_elr=[1]), 2),
        (PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, isr=[], leader=-1), 0),
        (PartitionChangeRecord(directories=[TOPIC_ID], eligible_leader_replicas=[2]), 2),
        (ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=None), 0),
        (ClientQuotaRecord(entity=[EntityData(entity_type="user", entity_name=None)], key="x", value=1.5), 0),
        *((record_type(), 0) for record_type in RECORD_TYPES.values()),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else str(value),
)
def test_records_are_read_as_they_were_written(record: Message, version: int) -> None:
    assert read_metadata_record(write_metadata_record(record, version)) == record


def test_a_topic_has_the_bytes_of_kafka() -> None:
    written = write_metadata_record(TopicRecord(name="foo", topic_id=TOPIC_ID))
    assert written == b"\x01\x02\x00" + b"\x04foo" + TOPIC_ID + b"\x00"


def test_types_of_no_interest_are_passed_over() -> None:
    assert read_metadata_record(b"\x01\x14\x00\x00") is None


@pytest.mark.parametrize("value", [b"", b"\x02\x02\x00", b"\x01\x02\x01", b"\x01\x02\x00\x04fo"])
def test_malformed_records_are_refused(value: bytes) -> None:
    with pytest.raises(MalformedError):
        read_metadata_record(value)
