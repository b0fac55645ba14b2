"""Which kinds of records in `__consumer_offsets` are read."""

import pytest

from kafkacompat.groups.classic.records import GroupMetadataKey
from kafkacompat.groups.consumer.records import GroupKey
from kafkacompat.groups.offset_records import OffsetCommitKey
from kafkacompat.groups.records import read_key


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("0000 0001 67 0001 74 00000003", OffsetCommitKey(group="g", topic="t", partition=3)),
        ("0001 0001 67 0001 74 00000003", OffsetCommitKey(group="g", topic="t", partition=3)),
        ("0002 0001 67", GroupMetadataKey(group="g")),
        ("0003 0001 67", GroupKey(group_id="g")),
        ("0009 0001 67", None),
        ("ffff", None),
    ],
)
def test_keys_are_read(data: str, message: object) -> None:
    assert read_key(bytes.fromhex(data)) == message
