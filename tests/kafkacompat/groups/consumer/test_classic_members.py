"""Members of the classic protocol in consumer groups."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.groups.consumer.member import MemberState
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.classic_support import Classic, settle_all
from tests.kafkacompat.groups.consumer.support import INTERVAL_S, Consumer, ConsumerWorld, settle_members
from tests.kafkacompat.groups.support import GROUP, REBALANCE_S, is_waiting, take_response

ALL = {"t": {0, 1, 2, 3}}


@pytest.fixture
def world() -> ConsumerWorld:
    return ConsumerWorld()


def test_classic_members_come_and_go_in_a_consumer_group(world: ConsumerWorld) -> None:
    first = Consumer(world, "m", "t").join()
    world.wait(1)
    second = Classic(world, "t").join()
    assert (second.has, len(second.member_id)) == ({}, 22)
    settle_all(world, first, second)
    assert sorted(map(len, (first.has["t"], second.has["t"]))) == [2, 2]
    assert list(world.coordinator.describe_consumer_group(GROUP)[1])[1].member_type == 0
    world.leave(second.member_id)
    settle_members(world, first)
    assert first.has == ALL


def test_a_classic_member_may_have_to_give_partitions_up(world: ConsumerWorld) -> None:
    anchor = Consumer(world, "m", "u").join()
    world.wait(1)
    classic = Classic(world, "t").join()
    settle_all(world, anchor, classic)
    assert classic.has == ALL
    newcomer = Consumer(world, "n", "t").join()
    settle_all(world, anchor, newcomer, classic)
    assert classic.has["t"] | newcomer.has["t"] == ALL["t"]
    assert len(classic.has["t"]) == 2


def test_a_classic_member_that_is_to_give_up_joins_again_even_in_the_newest_epoch(world: ConsumerWorld) -> None:
    anchor = Consumer(world, "m", "v").join()
    world.wait(1)
    classic = Classic(world, "t", "u").join()
    settle_all(world, anchor, classic)
    anchor.beat(subscribed_topic_names=["v", "w"])
    classic.beat()
    generation = world.contents().assignment_epoch
    assert (classic.generation, sorted(classic.has)) == (generation, ["t", "u"])
    classic.topics = ("u",)
    joined = classic.ask()
    assert (joined.generation_id, world.contents().assignment_epoch) == (generation, generation)
    assert world.heartbeat(classic.member_id, generation) == ErrorCode.REBALANCE_IN_PROGRESS


def test_classic_members_are_checked_as_ever(world: ConsumerWorld) -> None:
    Consumer(world, "m", "t").join()
    classic = Classic(world, "t").join()
    generation = classic.generation
    assert world.heartbeat("m", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("x", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(classic.member_id, generation + 1) == ErrorCode.ILLEGAL_GENERATION
    sync = take_response(world.sync(classic.member_id, generation, protocol_type="connect"))
    assert sync.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    sync = take_response(world.sync(classic.member_id, generation, protocol_name="roundrobin"))
    assert sync.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert take_response(world.sync("m", 2)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    codes = take_response(world.coordinator.leave(GROUP, [MemberIdentity(member_id="x")]))
    assert codes == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert take_response(world.commit(member_id=classic.member_id, generation=generation + 1)) == [
        ErrorCode.ILLEGAL_GENERATION
    ]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": [("range", b"")], "version": 3}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"session_s": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"instance": "i", "member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_not_every_classic_member_may_join(world: ConsumerWorld, options: dict[str, Any], code: ErrorCode) -> None:
    world.come("m", "t")
    assert take_response(world.join(**options)).error_code == code


def test_a_policy_may_keep_classic_members_out() -> None:
    world = ConsumerWorld(consumer_settings=ConsumerGroupSettings(migration_policy="DISABLED"))
    world.come("m", "t")
    assert take_response(world.join()).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_classic_member_that_does_everything_in_time_stays(world: ConsumerWorld) -> None:
    anchor = Consumer(world, "m", "t").join()
    classic = Classic(world, "t").join()
    settle_all(world, anchor, classic)
    for _ in range(REBALANCE_S + 1):
        world.wait(1)
        assert classic.beat() == 0
        anchor.beat()
    assert world.contents().members.keys() == {"m", classic.member_id}


def test_a_classic_member_that_does_not_join_again_in_time_is_taken_out(world: ConsumerWorld) -> None:
    anchor = Consumer(world, "m", "t").join()
    classic = Classic(world, "t").join()
    settle_all(world, anchor, classic)
    anchor.beat(subscribed_topic_names=["t", "u"])
    for _ in range(REBALANCE_S + 1):
        world.wait(1)
        world.heartbeat(classic.member_id, classic.generation)
        anchor.beat()
    assert world.contents().members.keys() == {"m"}


def test_a_classic_member_that_does_not_sync_in_time_is_taken_out(world: ConsumerWorld) -> None:
    anchor = Consumer(world, "m", "t").join()
    classic = Classic(world, "t")
    classic.member_id = classic.ask().member_id
    answer = classic.ask()
    for _ in range(REBALANCE_S + 1):
        world.wait(1)
        world.heartbeat(classic.member_id, answer.generation_id)
        anchor.beat()
    assert world.contents().members.keys() == {"m"}


def test_a_classic_member_rejoins_when_the_remaining_partitions_are_free(world: ConsumerWorld) -> None:
    world.set_topics(t=6)
    others = [Consumer(world, name, "t").join() for name in ("m1", "m2")]
    settle_members(world, *others)
    world.set_topics(t=7)
    classic = Classic(world, "t").join()
    assert classic.has == {"t": {6}}
    for other in others:
        assert world.heartbeat(classic.member_id, classic.generation) == 0
        other.beat().beat()
    assert classic.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert len(classic.has["t"]) == 2


def test_a_classic_member_that_gave_up_after_a_restart_is_left_alone(world: ConsumerWorld) -> None:
    anchor = Consumer(world, "m", "u").join()
    world.wait(1)
    classic = Classic(world, "t").join()
    settle_all(world, anchor, classic)
    Consumer(world, "n", "t").join()
    world.wait(1)
    classic.ask()
    assert world.contents().members[classic.member_id].state is MemberState.UNREVOKED_PARTITIONS
    after = ConsumerWorld(world.log)
    after.turn(100)
    anchor.world = classic.world = after
    for _ in range(REBALANCE_S + 2):
        after.wait(1)
        assert classic.beat() in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
        anchor.beat()


def test_a_classic_member_that_goes_over_to_the_new_protocol_is_left_alone(world: ConsumerWorld) -> None:
    anchor = Consumer(world, "m", "u").join()
    classic = Classic(world, "t").join()
    classic.ask()
    member = Consumer(world, classic.member_id, "t").join()
    settle_members(world, anchor, member)
    epoch = world.contents().epoch
    for _ in range(REBALANCE_S // INTERVAL_S):
        world.wait(INTERVAL_S)
        anchor.beat()
        member.beat()
    assert world.contents().epoch == epoch


def test_replaced_static_members_leave_no_timers_behind(world: ConsumerWorld) -> None:
    world.come("m", "u")
    for _ in range(20):
        Classic(world, "t", instance="i").join()
    assert {member_id for _, member_id in world.group().timers} == world.contents().members.keys()


def test_a_classic_members_response_waits_for_the_log(world: ConsumerWorld) -> None:
    world.come("m", "t")
    classic = Classic(world, "t").join()
    world.log.hold = True
    world.send("m", 2, subscribed_topic_names=["t", "v"])
    answer = world.sync(classic.member_id, classic.generation)
    assert is_waiting(answer)
    world.log.held.pop().succeed()
    assert take_response(answer).error_code == 0
