"""The records that consumer groups write, the groups after a restart, and their memory."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.groups.consumer.records import GroupKey, MemberCurrentKey, MemberKey, TargetKey
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.support import SESSION_S, Consumer, ConsumerWorld, settle_members, topic_id
from tests.kafkacompat.groups.support import GROUP, is_waiting, take_response


@pytest.fixture
def world() -> ConsumerWorld:
    return ConsumerWorld()


def test_an_answer_waits_for_the_log(world: ConsumerWorld) -> None:
    world.log.hold = True
    joining = world.send("m", 0, rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[])
    assert is_waiting(joining)
    later = world.send("m", 2)
    assert is_waiting(later)
    world.log.held.pop().succeed()
    assert take_response(joining).error_code == 0
    assert take_response(later).error_code == 0


def test_a_group_that_the_log_refuses_does_not_come_to_be(world: ConsumerWorld) -> None:
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.come("m", "t").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not world.coordinator._registry.by_id
    world.log.refuse_with = None
    assert world.come("m", "t").member_epoch == 2


def test_a_refused_member_has_no_timers(world: ConsumerWorld) -> None:
    world.come("m1", "t")
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    world.come("m2", "t")
    take_response(world.join(version=3))
    assert {member_id for _, member_id in world.group().timers} == {"m1"}


def test_a_change_that_the_log_refuses_is_taken_back(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", "t").join()
    world.wait(1)
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    refused = world.beat("m", 2, subscribed_topic_names=["u"])
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.refuse_with = None
    assert (member.beat().epoch, list(world.contents().members["m"].topics)) == (2, ["t"])


def test_topics_whose_change_the_log_refuses_to_note_are_looked_at_again(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", "t").join()
    world.wait(1)
    world.set_topics(t=5)
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.beat("m", 2).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.refuse_with = None
    assert member.beat().has == {"t": {0, 1, 2, 3, 4}}


def test_changes_on_top_of_a_refused_change_are_reloaded_from_the_log(world: ConsumerWorld) -> None:
    world.come("m1", "t")
    world.wait(1)
    world.log.hold = True
    joining: dict[str, Any] = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["t"], "topic_partitions": []}
    answers = [world.send(name, 0, **joining) for name in ("m2", "m3")]
    world.log.hold = False
    first, second = world.log.held
    first.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    second.succeed()
    assert take_response(answers[0]).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.turn(20)
    assert world.contents().members.keys() == {"m1", "m3"}
    assert world.beat("m1", 2).error_code == 0


def begin_reload(world: ConsumerWorld) -> list[Any]:
    """Let a group be loaded again; returns the appends that this waits for."""
    world.come("m1", "t")
    world.wait(1)
    world.log.hold = True
    joining: dict[str, Any] = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["t"], "topic_partitions": []}
    for name in ("m2", "m3"):
        world.send(name, 0, **joining)
    world.log.hold = False
    first, second = world.log.held
    first.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert world.beat("m1", 2).error_code == ErrorCode.NOT_COORDINATOR
    return [second]


def test_a_partition_that_is_resigned_before_it_is_loaded_again_stays_with_its_new_leader(world: ConsumerWorld) -> None:
    (waiting,) = begin_reload(world)
    world.coordinator.on_resignation(world.coordinator.partition_for(GROUP))
    waiting.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.turn(20)
    assert world.beat("m1", 2).error_code == ErrorCode.NOT_COORDINATOR


def test_a_later_leader_epoch_does_not_load_before_the_log_has_decided(world: ConsumerWorld) -> None:
    (waiting,) = begin_reload(world)
    world.coordinator.on_election(world.coordinator.partition_for(GROUP))
    world.turn(20)
    assert world.beat("m1", 2).error_code == ErrorCode.NOT_COORDINATOR
    waiting.succeed()
    world.turn(20)
    assert world.contents().members.keys() == {"m1", "m3"}


def test_a_repeated_heartbeat_does_not_see_a_refused_change(world: ConsumerWorld) -> None:
    world.come("m", "t")
    world.wait(1)
    saying_all: dict[str, Any] = {
        "rebalance_timeout_ms": 1,
        "subscribed_topic_names": ["t", "u"],
        "topic_partitions": world.owned(t={0, 1, 2, 3}),
    }
    world.log.hold = True
    answers = [world.send("m", 2, **saying_all) for _ in range(2)]
    world.log.hold = False
    world.log.held.pop().fail(ErrorCode.KAFKA_STORAGE_ERROR)
    assert all(take_response(answer).error_code for answer in answers)
    assert world.contents().members["m"].assigned.keys() == {topic_id("t")}


@pytest.mark.parametrize("rebalance_ms", [5000, 100_000])
def test_a_silent_member_is_taken_out_even_if_the_log_refuses_at_first(world: ConsumerWorld, rebalance_ms: int) -> None:
    world.come("m1", "t", rebalance_timeout_ms=rebalance_ms)
    world.wait(1)
    second = Consumer(world, "m2", "t").join()
    world.beat("m1", 2)
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    world.wait(min(SESSION_S, rebalance_ms // 1000) + 1)
    world.log.refuse_with = None
    assert "m1" in world.contents().members
    for _ in range(SESSION_S + 1):
        world.wait(1)
        second.beat()
    assert second.has == {"t": {0, 1, 2, 3}}


def test_only_changed_records_are_written(world: ConsumerWorld) -> None:
    members = [Consumer(world, name, "t").join() for name in ("m1", "m2")]
    settle_members(world, *members)
    before = len(world.log.records())
    for member in members:
        member.beat()
    assert len(world.log.records()) == before
    world.beat("m2", 3, subscribed_topic_names=["t", "v"])
    kinds = [int.from_bytes(bytes(record.key or b"")[:2], "big") for record in world.log.records()[before:]]
    # The member reported a change, so the group and the member have a new epoch, with the same targets.
    assert kinds == [MemberKey.TYPE, GroupKey.TYPE, TargetKey.TYPE, MemberCurrentKey.TYPE]


def test_a_group_continues_after_a_restart_without_a_rebalance(world: ConsumerWorld) -> None:
    members = [Consumer(world, name, "t", "u").join() for name in ("m1", "m2", "m3")]
    settle_members(world, *members)
    had = [(member.epoch, member.has) for member in members]
    before = world.contents()
    after = ConsumerWorld(world.log)
    after.turn(100)
    assert after.contents() == before
    for member in members:
        member.world = after
        member.beat()
    assert [(member.epoch, member.has) for member in members] == had
    assert after.contents().epoch == before.epoch


def test_a_member_in_the_middle_of_giving_up_goes_on_after_a_restart(world: ConsumerWorld) -> None:
    first = Consumer(world, "m1", "t").join()
    world.wait(1)
    second = Consumer(world, "m2", "t").join()
    first.beat()
    after = ConsumerWorld(world.log)
    after.turn(100)
    first.world = second.world = after
    settle_members(after, first, second)
    assert sorted(map(len, (first.has["t"], second.has["t"]))) == [2, 2]


def test_a_member_that_is_to_give_up_has_its_rebalance_timeout_after_a_restart(world: ConsumerWorld) -> None:
    world.come("m1", "t", rebalance_timeout_ms=5000)
    world.wait(1)
    Consumer(world, "m2", "t").join()
    world.beat("m1", 2)
    after = ConsumerWorld(world.log)
    after.turn(100)
    after.wait(4)
    assert after.beat("m1", 2).error_code == 0
    after.wait(2)
    assert after.beat("m1", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_that_do_not_come_back_after_a_restart_are_taken_out(world: ConsumerWorld) -> None:
    world.come("m", "t")
    after = ConsumerWorld(world.log)
    after.turn(100)
    after.wait(SESSION_S + 1)
    assert after.group().is_empty


# Memory


def test_members_beyond_the_memory_limit_are_refused() -> None:
    world = ConsumerWorld(member_metadata_max_bytes=10_000)
    assert world.come("m1", "t").error_code == 0
    refused = world.come("m2", *(f"topic-{number}" for number in range(200)))
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.come("m2", "t").error_code == 0
    used = world.coordinator._budget.used_bytes
    for name in ("m1", "m2"):
        world.beat(name, -1)
    assert 0 < world.coordinator._budget.used_bytes < used / 2
    world.coordinator.delete(GROUP)
    assert world.coordinator._budget.used_bytes == 0


def test_groups_without_members_take_memory_too() -> None:
    world = ConsumerWorld(member_metadata_max_bytes=20_000)
    codes = [world.come("m", "t", group=f"g{number}").error_code for number in range(20)]
    assert codes[0] == 0
    assert codes[-1] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.beat("m", -1, group="g0")
    assert world.come("m", "t", group="g0").error_code == 0
