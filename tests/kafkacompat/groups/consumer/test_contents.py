"""Loading the records of consumer groups, also records that older and newer Kafkas write."""

from __future__ import annotations

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.groups.consumer.member import MemberState
from kafkacompat.groups.consumer.records import (
    GroupKey,
    GroupValue,
    HeldPartitions,
    MemberCurrentKey,
    MemberCurrentValue,
    MemberKey,
    MemberTargetKey,
    MemberTargetValue,
    MemberValue,
    PartitionMetadataKey,
    PartitionMetadataValue,
    RecordChange,
    TargetKey,
    TargetPartitions,
    TargetValue,
    as_record,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.coordinator_log import FakeCoordinatorLog
from tests.kafkacompat.groups.consumer.support import ConsumerWorld, topic_id
from tests.kafkacompat.groups.support import GROUP, World

NAMES = {"group_id": GROUP, "member_id": "m"}


def make_group(state: int = 0, **more: object) -> list[RecordChange]:
    """A group with one member that reads t, as Kafka 4.0 wrote it: without the epochs of partitions."""
    held = [HeldPartitions(topic_id=topic_id("t"), partitions=[0, 1, 2, 3])]
    target = [TargetPartitions(topic_id=topic_id("t"), partitions=[0, 1, 2, 3])]
    current = MemberCurrentValue(member_epoch=7, previous_member_epoch=6, state=state, assigned_partitions=held)
    for field, value in more.items():
        setattr(current, field, value)
    member = MemberValue(client_id="c", client_host="/h", subscribed_topic_names=["t"], rebalance_timeout_ms=1000)
    return [
        (MemberKey(**NAMES), member),
        (GroupKey(group_id=GROUP), GroupValue(epoch=7)),
        (PartitionMetadataKey(group_id=GROUP), PartitionMetadataValue()),
        (MemberTargetKey(**NAMES), MemberTargetValue(topic_partitions=target)),
        (TargetKey(group_id=GROUP), TargetValue(assignment_epoch=7)),
        (MemberCurrentKey(**NAMES), current),
    ]


def load_world(changes: list[RecordChange], *raw: Record) -> ConsumerWorld:
    log = FakeCoordinatorLog()
    records = [as_record(change) for change in changes] + list(raw)
    log.store(World().coordinator.partition_for(GROUP), build_batch([(0, key, value, ()) for key, value in records]))
    world = ConsumerWorld(log)
    world.turn(20)
    return world


def test_partitions_without_epochs_are_held_since_the_members_own() -> None:
    member = load_world(make_group()).contents().members["m"]
    assert member.assigned == {topic_id("t"): dict.fromkeys(range(4), 7)}


def test_as_many_epochs_as_partitions_count() -> None:
    held = [HeldPartitions(topic_id=topic_id("t"), partitions=[0, 1], assignment_epochs=[3, 4])]
    some = [HeldPartitions(topic_id=topic_id("t"), partitions=[2, 3], assignment_epochs=[3])]
    member = (
        load_world(make_group(assigned_partitions=held, partitions_pending_revocation=some)).contents().members["m"]
    )
    assert (member.assigned[topic_id("t")], member.pending_revocation[topic_id("t")]) == ({0: 3, 1: 4}, {2: 7, 3: 7})


def test_a_member_that_is_away_holds_its_partitions_from_the_beginning() -> None:
    member = load_world(make_group(member_epoch=-2)).contents().members["m"]
    assert set(member.assigned[topic_id("t")].values()) == {0}


def test_partition_metadata_of_kafka_4_0_is_deleted_with_the_first_heartbeat() -> None:
    world = load_world(make_group())
    assert world.contents().has_partition_metadata
    assert world.beat("m", 7).member_epoch == 8
    assert not world.contents().has_partition_metadata
    last = {record.key: record.value for record in world.log.records()}
    assert last[as_record((PartitionMetadataKey(group_id=GROUP), None))[0]] is None


def test_a_member_in_an_unknown_state_is_fenced() -> None:
    world = load_world(make_group(state=9))
    assert world.contents().members["m"].state is MemberState.UNKNOWN
    assert world.beat("m", 7).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    answer = world.come("m", "t")
    assert (answer.error_code, world.read(answer)) == (0, {"t": {0, 1, 2, 3}})


def test_a_record_of_a_newer_version_is_left_out() -> None:
    key, value = as_record(
        (MemberKey(**NAMES), MemberValue(client_id="c", client_host="/h", subscribed_topic_names=["u"]))
    )
    assert value is not None
    world = load_world(make_group(), (key, b"\x00\x01" + value[2:]), (key, b"\x00\x00"))
    assert world.contents().members["m"].topics == frozenset({"t"})


def test_tombstones_of_absent_records_do_nothing() -> None:
    keys = [MemberKey(**NAMES), MemberCurrentKey(**NAMES), MemberTargetKey(**NAMES), TargetKey(group_id=GROUP)]
    world = load_world([(key, None) for key in (*keys, GroupKey(group_id=GROUP))])
    assert not world.coordinator._registry.by_id


def test_a_members_tombstone_removes_its_assignment_too() -> None:
    world = load_world([*make_group(), (MemberKey(**NAMES), None)])
    assert not world.contents().members
    assert not world.contents().owners


def test_a_reassigned_partition_stays_with_its_new_owner() -> None:
    """Compaction may leave the records in any order."""
    other = {"group_id": GROUP, "member_id": "n"}
    held = [HeldPartitions(topic_id=topic_id("t"), partitions=[0])]
    passed_on: list[RecordChange] = [
        (MemberCurrentKey(**other), MemberCurrentValue(member_epoch=8, assigned_partitions=held)),
        (MemberCurrentKey(**NAMES), MemberCurrentValue(member_epoch=8)),
    ]
    world = load_world([*make_group(), *passed_on])
    assert world.contents().owners == {(topic_id("t"), 0): "n"}


def test_the_memory_of_groups_is_counted_and_released() -> None:
    world = load_world(make_group())
    budget = world.coordinator._budget
    assert budget.used_bytes == world.contents().size_bytes > 0
    world.coordinator.on_resignation(world.coordinator.partition_for(GROUP))
    assert budget.used_bytes == 0
