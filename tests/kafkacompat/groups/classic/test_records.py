"""The records of classic groups, byte by byte as Kafka 4.3 writes them."""

from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.record_format import decode_value
from kafkacompat.coordination.shard import Shard
from kafkacompat.coordination.writer import ShardWriter
from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.classic.member import ClassicMember
from kafkacompat.groups.classic.records import GroupMetadataValue, group_tombstone
from tests.fakes.coordinator_log import FakeCoordinatorLog
from tests.kafkacompat.groups.support import TurningClock


def test_a_tombstone() -> None:
    assert group_tombstone("g") == (bytes.fromhex("0002 0001 67"), None)


def a_group() -> ClassicGroup:
    log: CoordinatorLog = FakeCoordinatorLog()
    shard = Shard(0, ShardWriter(0, log, TurningClock(), timeout_ms=5000))
    return ClassicGroup("g", shard, MemoryBudget(10_000), 1000)


def test_an_empty_group() -> None:
    key, value = a_group().generation_record({})
    assert key == bytes.fromhex("0002 0001 67")
    assert value == bytes.fromhex("0003 0000 00000000 ffff ffff 00000000000003e8 00000000")


def test_a_group_with_a_member() -> None:
    group = a_group()
    group.add_member(ClassicMember("m", "i", "c", "/h", 10_000, 60_000, (("r", b"sub"), ("s", b""))), "consumer")
    group.generation_id, group.protocol_name = 7, "r"
    _, value = group.generation_record({"m": b"ass"})
    member = "0001 6d 0001 69 0001 63 0002 2f68 0000ea60 00002710 00000003 737562 00000003 617373"
    expected = f"0003 0008 {b'consumer'.hex()} 00000007 0001 72 0001 6d 00000000000003e8 00000001 {member}"
    assert value == bytes.fromhex(expected)


def test_older_versions_of_groups_are_read() -> None:
    text = "0008 636f6e73756d6572 00000007 0001 72 0001 6d"
    member = "0001 6d 0001 63 0002 2f68 00002710 00000003 737562 00000003 617373"
    value = decode_value(GroupMetadataValue, bytes.fromhex(f"0000 {text} 00000001 {member}"))
    assert (value.protocol_type, value.generation, value.current_state_timestamp) == ("consumer", 7, -1)
    assert (value.members[0].rebalance_timeout, value.members[0].session_timeout) == (-1, 10_000)
    assert value.members[0].assignment == b"ass"
