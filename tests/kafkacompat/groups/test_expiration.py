"""KIP-211: how long offsets are kept."""

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.groups.classic.records import GroupMetadataKey
from kafkacompat.groups.records import read_key
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import GROUP, TOPIC_ID, World, take_response

LOOK_S = 600


def pass_time(world: World, seconds: float, *alive: str) -> None:
    """Let time pass, with heartbeats of the live members, until the next check of old offsets has ended."""
    for _ in range(int(seconds // 5)):
        world.clock.advance(5)
        for member_id in alive:
            world.heartbeat(member_id, 1)
    world.turn(10)


def world_with(tombstones_a_batch: int = 1000) -> World:
    """Offsets are kept for an hour."""
    return World(offsets_retention_ms=3_600_000, tombstones_a_batch=tombstones_a_batch)


def test_a_simple_group_loses_each_offset_an_hour_after_its_commit() -> None:
    world = world_with()
    world.commit(1, partition=0)
    pass_time(world, 1800)
    world.commit(2, partition=1)
    pass_time(world, 1800 + LOOK_S)
    assert [world.committed(partition=0), world.committed(partition=1)] == [-1, 2]
    pass_time(world, 1800 + LOOK_S)
    assert world.coordinator.list() == []


def test_a_group_that_had_members_loses_its_offsets_an_hour_after_it_became_empty() -> None:
    world = world_with()
    (member_id,) = world.stable()
    take_response(world.commit(member_id=member_id, generation=1))
    pass_time(world, 2 * 3600, member_id)
    assert world.committed() == 7
    world.leave(member_id)
    pass_time(world, 3600 - LOOK_S)
    assert world.committed() == 7
    pass_time(world, 2 * LOOK_S)
    assert world.committed() == -1
    assert world.coordinator.list() == []


def test_a_stable_group_of_consumers_loses_old_offsets_of_topics_it_does_not_read() -> None:
    world = world_with()
    (member_id,) = world.stable()
    take_response(world.commit(member_id=member_id, generation=1, topic="t"))
    take_response(world.commit(member_id=member_id, generation=1, topic="dropped"))
    pass_time(world, 3600 + LOOK_S, member_id)
    assert [world.committed(topic="t"), world.committed(topic="dropped")] == [7, -1]


@pytest.mark.parametrize("kind", ["connect", "unreadable subscription", "rebalance"])
def test_groups_whose_offsets_never_expire(kind: str) -> None:
    world = world_with()
    kinds: dict[str, dict[str, Any]] = {
        "connect": {"protocol_type": "connect"},
        "unreadable subscription": {"protocols": (("range", b"\0"),)},
        "rebalance": {},
    }
    (member_id,) = world.stable(**kinds[kind])
    take_response(world.commit(member_id=member_id, generation=1, topic="dropped"))
    if kind == "rebalance":
        world.join(version=3, rebalance_s=10_000)
    pass_time(world, 3600 + LOOK_S, member_id)
    assert world.committed(topic="dropped") == 7


def test_a_commit_with_its_own_retention_time_is_kept_as_long_as_it_asked() -> None:
    world = world_with()
    world.commit(1, partition=0, retention_ms=60_000)
    world.commit(2, partition=1, retention_ms=4 * 3_600_000)
    pass_time(world, LOOK_S)
    assert [world.committed(partition=0), world.committed(partition=1)] == [-1, 2]
    pass_time(world, 2 * 3600)
    assert world.restarted().committed(partition=1) == 2


def test_an_empty_group_without_offsets_goes_with_the_next_look() -> None:
    world = world_with()
    world.leave(*world.stable())
    assert world.state() == "Empty"
    pass_time(world, LOOK_S)
    assert world.coordinator.list() == []
    assert world.restarted().coordinator.list() == []


def test_an_empty_group_with_a_pending_member_stays() -> None:
    world = world_with()
    world.leave(*world.stable())
    pass_time(world, LOOK_S - 50)
    member_id = take_response(world.join(session_s=1800)).member_id
    pass_time(world, LOOK_S)
    assert isinstance(world.join(member_id), Deferred), "its id is still known"


def test_offsets_that_are_being_committed_are_left_for_the_next_look() -> None:
    world = world_with()
    world.commit(1)
    pass_time(world, 3600 - LOOK_S)
    world.log.hold = True
    world.commit(2)
    pass_time(world, LOOK_S)
    world.log.hold = False
    for held in world.log.held:
        held.succeed()
    assert world.committed() == 2
    assert world.restarted().committed() == 2


def test_tombstones_come_in_batches_and_delete_in_the_log_too() -> None:
    world = world_with(tombstones_a_batch=10)
    for partition in range(25):
        world.commit(partition, partition=partition)
    pass_time(world, 3600 + LOOK_S)
    batches = world.log.batches[world.coordinator.partition_for(GROUP)]
    assert len(batches) == 25 + 3
    assert world.restarted().coordinator.list() == []
    tombstones = [record for record in world.log.records() if record.value is None]
    assert len({record.key for record in tombstones}) == 26
    assert read_key(tombstones[-1].key or b"") == GroupMetadataKey(group=GROUP)


def test_tombstones_of_a_group_with_a_long_name_are_not_too_large_for_the_log() -> None:
    world = world_with()
    for partition in range(50):
        world.commit(partition, partition=partition, group="g" * 0x7FFF)
    before = sum(map(len, world.log.batches.values()))
    pass_time(world, 3600 + LOOK_S)
    tombstones = [batch for batches in world.log.batches.values() for batch in batches][before:]
    assert max(map(len, tombstones)) < 1 << 20
    assert world.restarted().coordinator.list() == []


def test_if_the_log_refuses_the_tombstones_the_offsets_stay() -> None:
    world = world_with()
    world.commit()
    pass_time(world, 3600 - LOOK_S)
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    pass_time(world, 2 * LOOK_S)
    assert world.committed() == 7
    world.log.refuse_with = None
    pass_time(world, LOOK_S)
    assert world.committed() == -1


def test_many_groups_are_looked_at_a_few_at_a_turn() -> None:
    world = World()
    for number in range(1000):
        world.commit(group=f"g{number}", retention_ms=0)
    world.clock.skip(LOOK_S)
    world.turn(2)
    groups = world.coordinator.list()
    assert isinstance(groups, list)
    assert 500 < len(groups) < 1000
    world.turn(10)
    assert world.coordinator.list() == []


def test_after_a_stop_nothing_is_looked_at() -> None:
    world = World()
    world.coordinator.stop()
    assert world.clock.getDelayedCalls() == []


# Deleted topics


def test_the_offsets_of_a_deleted_topic_go_with_it() -> None:
    world = World()
    world.stable()
    world.commit(group="other", topic="t")
    world.commit(group="other", topic="u")
    done = world.coordinator.on_topics_deleted({"t": TOPIC_ID})
    world.turn(3)
    assert done.called
    assert [world.committed(group="other", topic=topic) for topic in "tu"] == [-1, 7]


def test_the_offsets_of_a_topic_of_the_same_name_stay() -> None:
    world = World()
    world.commit(topic="t")
    world.coordinator.on_topics_deleted({"t": bytes(15) + b"\2"})
    world.turn(3)
    assert world.committed() == 7


def test_an_offset_of_a_deleted_topic_that_is_just_being_committed_goes_too() -> None:
    world = World()
    world.commit(1)
    world.log.hold = True
    world.commit(2)
    world.coordinator.on_topics_deleted({"t": TOPIC_ID})
    world.turn(3)
    world.log.hold = False
    world.log.held.pop().succeed()
    assert world.committed() == -1
    assert world.restarted().committed() == -1
