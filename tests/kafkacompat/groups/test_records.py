"""The records of `__consumer_offsets`, byte by byte as Kafka 4.3 writes them."""

import pytest

from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.shard import Shard
from kafkacompat.coordination.writer import Writer
from kafkacompat.groups.classic.group import Group
from kafkacompat.groups.classic.member import Member
from kafkacompat.groups.offsets import CommittedOffset
from kafkacompat.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    group_record,
    group_tombstone,
    offset_record,
    offset_tombstone,
    read_key,
    read_value,
)
from kafkacompat.wire.primitives import MalformedError
from tests.fakes.coordinator_log import FakeCoordinatorLog
from tests.kafkacompat.groups.support import TurningClock

OFFSET_KEY = "0001 0001 67 0001 74 00000003"
TOPIC_ID = bytes(range(16))


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
    read = read_value(OffsetCommitValue, value)
    assert (read.leader_epoch, read.expire_timestamp) == (leader_epoch, -1)


def test_a_commit_with_its_own_retention_time_is_of_version_1() -> None:
    _, value = offset_record("g", "t", 3, CommittedOffset(5, 2, "hi", 1000, 2000, TOPIC_ID))
    assert value == bytes.fromhex("0001 0000000000000005 0002 6869 00000000000003e8 00000000000007d0")


def test_tombstones() -> None:
    assert offset_tombstone("g", "t", 3) == (bytes.fromhex(OFFSET_KEY), None)
    assert group_tombstone("g") == (bytes.fromhex("0002 0001 67"), None)


def a_group() -> Group:
    log: CoordinatorLog = FakeCoordinatorLog()
    shard = Shard(0, Writer(0, log, TurningClock(), timeout_ms=5000))
    return Group("g", shard, MemoryBudget(10_000), 1000)


def test_an_empty_group() -> None:
    key, value = group_record(a_group(), {})
    assert key == bytes.fromhex("0002 0001 67")
    assert value == bytes.fromhex("0003 0000 00000000 ffff ffff 00000000000003e8 00000000")


def test_a_group_with_a_member() -> None:
    group = a_group()
    group.add(Member("m", "i", "c", "/h", 10_000, 60_000, (("r", b"sub"), ("s", b""))), "consumer")
    group.generation_id, group.protocol_name = 7, "r"
    _, value = group_record(group, {"m": b"ass"})
    member = "0001 6d 0001 69 0001 63 0002 2f68 0000ea60 00002710 00000003 737562 00000003 617373"
    expected = f"0003 0008 {b'consumer'.hex()} 00000007 0001 72 0001 6d 00000000000003e8 00000001 {member}"
    assert value == bytes.fromhex(expected)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("0000 0001 67 0001 74 00000003", OffsetCommitKey(group="g", topic="t", partition=3)),
        (OFFSET_KEY, OffsetCommitKey(group="g", topic="t", partition=3)),
        ("0002 0001 67", GroupMetadataKey(group="g")),
        ("0003 0001 67", None),
        ("ffff", None),
    ],
)
def test_keys_are_read(data: str, message: object) -> None:
    assert read_key(bytes.fromhex(data)) == message


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
    assert read_value(OffsetCommitValue, bytes.fromhex(data)) == message


def test_older_versions_of_groups_are_read() -> None:
    text = "0008 636f6e73756d6572 00000007 0001 72 0001 6d"
    member = "0001 6d 0001 63 0002 2f68 00002710 00000003 737562 00000003 617373"
    value = read_value(GroupMetadataValue, bytes.fromhex(f"0000 {text} 00000001 {member}"))
    assert (value.protocol_type, value.generation, value.current_state_timestamp) == ("consumer", 7, -1)
    assert (value.members[0].rebalance_timeout, value.members[0].session_timeout) == (-1, 10_000)
    assert value.members[0].assignment == b"ass"


@pytest.mark.parametrize("data", ["", "00", "0005", "ffff", "0004 0000"])
def test_what_is_no_value_is_malformed(data: str) -> None:
    with pytest.raises(MalformedError):
        read_value(OffsetCommitValue, bytes.fromhex(data))


def test_a_topic_id_is_left_out_for_a_kafka_that_knows_none() -> None:
    _, value = offset_record("g", "t", 3, CommittedOffset(5, 2, "", 1000, topic_id=TOPIC_ID), with_topic_id=False)
    assert value == bytes.fromhex("0003 0000000000000005 00000002 0000 00000000000003e8")
