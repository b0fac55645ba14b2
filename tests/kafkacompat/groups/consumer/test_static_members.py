"""Static members of consumer groups (KIP-345): they leave temporarily, are replaced, and conflict with each other."""

from __future__ import annotations

import pytest

from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.support import SESSION_S, Consumer, ConsumerWorld, settle_members, topic_id
from tests.kafkacompat.groups.support import GROUP, take_response

HALF = 2


@pytest.fixture
def world() -> ConsumerWorld:
    return ConsumerWorld()


def test_a_static_member_keeps_its_place_while_it_is_away(world: ConsumerWorld) -> None:
    first = Consumer(world, "m1", "t", instance_id="i1").join()
    second = Consumer(world, "m2", "t").join()
    settle_members(world, first, second)
    epoch, had = world.contents().epoch, first.has
    gone = world.beat("m1", -2, instance_id="i1")
    assert (gone.error_code, gone.member_epoch) == (0, -2)
    settle_members(world, second)
    assert len(second.has["t"]) == HALF
    back = world.come("m3", "t", instance_id="i1")
    assert (back.error_code, world.read(back), back.member_epoch) == (0, had, epoch)
    assert world.contents().epoch == epoch
    assert world.contents().members.keys() == {"m2", "m3"}


def test_one_that_does_not_come_back_in_time_is_taken_out(world: ConsumerWorld) -> None:
    world.come("m1", "t", instance_id="i1")
    world.beat("m1", -2, instance_id="i1")
    world.wait(SESSION_S + 1)
    assert world.group().is_empty
    assert not world.contents().statics


def test_one_that_goes_in_the_middle_of_giving_up_has_its_session_timeout_to_come_back(world: ConsumerWorld) -> None:
    world.come("m1", "t", instance_id="i1", rebalance_timeout_ms=2000)
    world.wait(1)
    second = Consumer(world, "m2", "t").join()
    world.beat("m1", 2)
    world.beat("m1", -2, instance_id="i1")
    settle_members(world, second)
    assert world.contents().members.keys() == {"m1", "m2"}
    assert world.come("m3", "t", instance_id="i1").error_code == 0


def test_one_that_leaves_for_good_is_gone(world: ConsumerWorld) -> None:
    world.come("m1", "t", instance_id="i1")
    assert world.beat("m1", -1, instance_id="i1").error_code == 0
    assert world.group().is_empty


def test_an_instance_id_in_use_is_not_given_away(world: ConsumerWorld) -> None:
    world.come("m1", "t", instance_id="i1")
    assert world.come("m2", "t", instance_id="i1").error_code == ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_static_member_that_joins_again_under_its_id_is_the_same(world: ConsumerWorld) -> None:
    """The response to the first request may have been lost."""
    first, again = (world.come("m1", "t", instance_id="i1") for _ in range(2))
    assert (again.error_code, again.member_epoch, world.read(again)) == (0, first.member_epoch, world.read(first))
    world.beat("m1", -2, instance_id="i1")
    back = world.come("m1", "t", instance_id="i1")
    assert (back.member_epoch, world.read(back)) == (first.member_epoch, world.read(first))


def test_a_replaced_member_is_fenced(world: ConsumerWorld) -> None:
    world.come("m1", "t", instance_id="i1")
    world.beat("m1", -2, instance_id="i1")
    world.come("m2", "t", instance_id="i1")
    for epoch in (2, -1, -2):
        assert world.beat("m1", epoch, instance_id="i1").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert world.beat("m2", 2, instance_id="i1").error_code == 0
    assert world.beat("m2", 2, instance_id="i2").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_replaced_member_cannot_commit_any_more(world: ConsumerWorld) -> None:
    world.come("m1", "t", instance_id="i1")
    world.beat("m1", -2, instance_id="i1")
    world.come("m2", "t", instance_id="i1")
    assert world.commit(member_id="m1", generation=2) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_returned_member_may_commit_its_earlier_partitions(world: ConsumerWorld) -> None:
    world.come("m1", "t", instance_id="i1")
    world.beat("m1", -2, instance_id="i1")
    world.come("m2", "t", instance_id="i1")
    offset = OffsetToCommit("t", topic_id("t"), 0, 7, 0, "")
    assert take_response(world.coordinator.commit(GROUP, SenderIdentity("m2", None, 1), [offset])) == [ErrorCode.NONE]


def test_a_returned_member_with_another_subscription_gets_its_partitions(world: ConsumerWorld) -> None:
    world.come("m1", "t", instance_id="i1")
    world.beat("m1", -2, instance_id="i1")
    world.wait(1)
    back = Consumer(world, "m2", "u", instance_id="i1").join()
    settle_members(world, back)
    assert back.has == {"u": {0, 1}}


def test_an_instance_id_that_its_member_gave_up_for_another_is_free(world: ConsumerWorld) -> None:
    for instance in ("i1", "i2"):
        world.come("m1", "t", instance_id=instance)
    assert world.contents().statics == {"i2": "m1"}
    assert world.come("m2", "t", instance_id="i1").error_code == 0


def test_the_share_of_a_member_that_takes_the_place_of_a_static_one_goes_to_the_others(world: ConsumerWorld) -> None:
    world.come("m1", "t", instance_id="i1")
    second, third = (Consumer(world, name, "t").join() for name in ("m2", "m3"))
    world.wait(1)
    settle_members(world, second, third)
    world.beat("m1", -2, instance_id="i1")
    second = Consumer(world, "m2", "t", instance_id="i1").join()
    settle_members(world, second, third)
    assert sorted(second.has["t"] | third.has["t"]) == [0, 1, 2, 3]


def test_places_of_members_that_are_away_outlast_a_restart(world: ConsumerWorld) -> None:
    world.come("m1", "t", instance_id="i1")
    world.beat("m1", -2, instance_id="i1")
    after = ConsumerWorld(world.log)
    after.turn(100)
    back = after.come("m2", "t", instance_id="i1")
    assert (back.error_code, after.read(back)) == (0, {"t": {0, 1, 2, 3}})
