"""The records of committed offsets, byte by byte as Kafka 4.3 writes them."""

import pytest

from kafkacompat.coordination.record_format import decode_value
from kafkacompat.groups.committed_offset import CommittedOffset
from kafkacompat.groups.offset_records import OffsetCommitValue, offset_record, offset_tombstone
from kafkacompat.wire.primitives import MalformedError

OFFSET_KEY = "0001 0001 67 0001 74 00000003"
TOPIC_ID = bytes(range(16))


def test_a_tombstone() -> None:
    assert offset_tombstone("g", "t", 3) == (bytes.fromhex(OFFSET_KEY), None)


def test_a_commit() -> None:
    committed = CommittedOffset(5, 2, "hi", 1000, topic_id=TOPIC_ID)
    key, value = offset_record("g", "t", 3, committed)
    assert key == bytes.fromhex(OFFSET_KEY)
    expected = "0004 0000000000000005 00000002 03 6869 00000000000003e8 01 00 10 000102030405060708090a0b0c0d0e0f"
    assert value == bytes.fromhex(expected)


@pytest.mark.parametrize(
    ("leader_epoch", "expected"),
    [
        (2, "0003 0000000000000005 00000002 0000 00000000000003e8"),
        (-1, "0001 0000000000000005 0000 00000000000003e8 ffffffffffffffff"),
    ],
)
def test_a_commit_without_a_topic_id_can_be_read_by_older_kafkas(leader_epoch: int, expected: str) -> None:
    committed = CommittedOffset(5, leader_epoch, "", 1000)
    _, value = offset_record("g", "t", 3, committed)
    assert value == bytes.fromhex(expected)
    read = decode_value(OffsetCommitValue, value)
    assert (read.leader_epoch, read.expire_timestamp) == (leader_epoch, -1)


def test_a_commit_with_its_own_retention_time_is_of_version_1() -> None:
    _, value = offset_record("g", "t", 3, CommittedOffset(5, 2, "hi", 1000, 2000, TOPIC_ID))
    assert value == bytes.fromhex("0001 0000000000000005 0002 6869 00000000000003e8 00000000000007d0")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("0000 0000000000000005 0000 00000000000003e8", OffsetCommitValue(offset=5, commit_timestamp=1000)),
        (
            "0001 0000000000000005 0000 00000000000003e8 00000000000007d0",
            OffsetCommitValue(offset=5, commit_timestamp=1000, expire_timestamp=2000),
        ),
        ("0002 0000000000000005 0000 00000000000003e8", OffsetCommitValue(offset=5, commit_timestamp=1000)),
        (
            "0003 0000000000000005 00000002 0000 00000000000003e8",
            OffsetCommitValue(offset=5, leader_epoch=2, commit_timestamp=1000),
        ),
    ],
)
def test_older_versions_of_commits_are_read(data: str, message: OffsetCommitValue) -> None:
    assert decode_value(OffsetCommitValue, bytes.fromhex(data)) == message


@pytest.mark.parametrize("data", ["", "00", "0005", "ffff", "0004 0000"])
def test_bad_values_are_malformed(data: str) -> None:
    with pytest.raises(MalformedError):
        decode_value(OffsetCommitValue, bytes.fromhex(data))


def test_a_topic_id_is_left_out_for_a_kafka_that_knows_none() -> None:
    _, value = offset_record("g", "t", 3, CommittedOffset(5, 2, "", 1000, topic_id=TOPIC_ID), with_topic_id=False)
    assert value == bytes.fromhex("0003 0000000000000005 00000002 0000 00000000000003e8")
