"""Members of the consumer protocol, heartbeat by heartbeat."""

from __future__ import annotations

import pytest

from kafkacompat.groups.consumer.member import MemberState
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.support import (
    REBALANCE_MS,
    SESSION_S,
    Consumer,
    ConsumerWorld,
    make_topic,
    settle_members,
)
from tests.kafkacompat.groups.support import GROUP

ALL = {"t": {0, 1, 2, 3}}


@pytest.fixture
def world() -> ConsumerWorld:
    return ConsumerWorld()


# One member


def test_the_first_member_has_everything_at_once(world: ConsumerWorld) -> None:
    answer = world.come("m", "t")
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m", 2)
    assert answer.heartbeat_interval_ms == 5000
    assert world.read(answer) == ALL
    assert world.group().state_name == "Stable"


def test_an_unchanged_assignment_is_not_returned(world: ConsumerWorld) -> None:
    world.come("m", "t")
    answer = world.beat("m", 2)
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 2, None)


def test_a_full_heartbeat_gets_the_whole_assignment(world: ConsumerWorld) -> None:
    world.come("m", "t")
    full = world.beat("m", 2, rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=world.owned(**ALL))
    assert world.read(full) == ALL


def test_a_later_subscription_is_assigned(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", "t").join()
    world.wait(1)
    member.beat(subscribed_topic_names=["t", "u"])
    assert (member.epoch, member.has) == (3, ALL | {"u": {0, 1}})


def test_a_member_may_subscribe_to_nothing(world: ConsumerWorld) -> None:
    answer = world.come("m")
    assert (answer.error_code, world.read(answer)) == (0, {})
    assert world.contents().epoch == 1


def test_partitions_of_unsubscribed_topics_are_revoked(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", "t", "u").join()
    answer = world.beat("m", 2, subscribed_topic_names=["u"])
    assert (answer.member_epoch, world.read(answer)) == (2, {"u": {0, 1}})
    assert world.contents().members["m"].state is MemberState.UNREVOKED_PARTITIONS
    member.has = {"u": {0, 1}}
    settle_members(world, member)
    assert (member.epoch, member.has) == (3, {"u": {0, 1}})


# Rejected heartbeats


@pytest.mark.parametrize(
    ("epoch", "fields", "code"),
    [
        (0, {"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        (0, {"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        (0, {"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        (0, {"instance_id": " "}, ErrorCode.INVALID_REQUEST),
        (0, {"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        (0, {"server_assignor": "mine"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        (-2, {}, ErrorCode.INVALID_REQUEST),
        (-3, {}, ErrorCode.INVALID_REQUEST),
        (7, {}, ErrorCode.GROUP_ID_NOT_FOUND),
        (-1, {}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_a_request_that_means_nothing_is_refused(
    world: ConsumerWorld, epoch: int, fields: dict[str, object], code: ErrorCode
) -> None:
    joining = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["t"], "topic_partitions": []}
    answer = world.beat("m", epoch, **(joining if epoch == 0 else {}) | fields)
    assert answer.error_code == code
    assert answer.error_message
    assert not world.coordinator._registry.by_id


def test_a_member_id_is_generated_in_version_0_only(world: ConsumerWorld) -> None:
    assert world.come("").error_code == ErrorCode.INVALID_REQUEST
    given = world.come("", "t", needs_member_id=False)
    assert given.error_code == 0
    assert len(given.member_id or "") == 22


def test_a_broker_may_have_no_such_groups() -> None:
    world = ConsumerWorld(consumer_settings=ConsumerGroupSettings(is_served=False))
    assert world.come("m", "t").error_code == ErrorCode.UNSUPPORTED_VERSION
    assert world.coordinator.describe_consumer_group(GROUP)[0].error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_group_needs_a_name(world: ConsumerWorld) -> None:
    assert world.come("m", "t", group="").error_code == ErrorCode.INVALID_REQUEST


def test_a_stranger_is_unknown(world: ConsumerWorld) -> None:
    world.come("m", "t")
    assert world.beat("n", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat("n", -1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_with_another_epoch_is_fenced(world: ConsumerWorld) -> None:
    world.come("m", "t")
    for epoch in (1, 3):
        assert world.beat("m", epoch).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_the_previous_epoch_is_accepted_from_a_member_with_its_own_partitions(world: ConsumerWorld) -> None:
    """The response with the next epoch may have been lost."""
    member = Consumer(world, "m", "t").join()
    world.wait(1)
    world.beat("m", member.epoch, subscribed_topic_names=["t", "u"])
    assert world.beat("m", 2).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert world.beat("m", 2, topic_partitions=world.owned(t={0}, u={7})).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    answer = world.beat("m", 2, topic_partitions=world.owned(**ALL))
    assert (answer.error_code, answer.member_epoch) == (0, 3)
    world.wait(1)
    world.beat("m", 3, subscribed_topic_names=["t", "u", "v"])
    assert world.contents().members["m"].member_epoch == 4
    assert world.beat("m", 2, topic_partitions=world.owned(**ALL)).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_fenced_member_joins_again_under_its_id(world: ConsumerWorld) -> None:
    world.come("m", "t")
    answer = world.come("m", "t")
    assert (answer.error_code, answer.member_epoch, world.read(answer)) == (0, 2, ALL)


def test_a_full_group_refuses_new_members() -> None:
    world = ConsumerWorld(consumer_settings=ConsumerGroupSettings(max_size=1))
    world.come("m", "t")
    assert world.come("n", "t").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.come("m", "t").error_code == 0


# Several members


def test_a_second_member_gets_its_share_when_the_first_has_given_it_up(world: ConsumerWorld) -> None:
    first = Consumer(world, "m1", "t").join()
    world.wait(1)
    second = Consumer(world, "m2", "t").join()
    assert (second.epoch, second.has) == (3, {})
    assert world.contents().members["m2"].state is MemberState.UNRELEASED_PARTITIONS
    assert world.group().state_name == "Reconciling"
    first.beat()
    assert (first.epoch, len(first.has["t"])) == (2, 2)
    assert second.beat().has == {}
    first.beat()
    assert first.epoch == 3
    second.beat()
    assert first.has["t"] | second.has["t"] == ALL["t"]
    assert world.group().state_name == "Stable"


def test_partitions_are_not_shared_out_more_often_than_every_second(world: ConsumerWorld) -> None:
    Consumer(world, "m1", "t").join()
    second = Consumer(world, "m2", "t").join()
    assert (world.contents().epoch, world.contents().assignment_epoch) == (3, 2)
    assert (second.epoch, second.has, world.group().state_name) == (2, {}, "Assigning")
    world.wait(1)
    second.beat()
    assert (world.contents().assignment_epoch, second.epoch) == (3, 3)


def test_a_leaving_members_partitions_go_to_the_others(world: ConsumerWorld) -> None:
    members = [Consumer(world, name, "t").join() for name in ("m1", "m2")]
    settle_members(world, *members)
    gone = world.beat("m2", -1)
    assert (gone.error_code, gone.member_epoch, gone.member_id) == (0, -1, "m2")
    settle_members(world, members[0])
    assert members[0].has == ALL


def test_a_silent_member_is_taken_out(world: ConsumerWorld) -> None:
    first, second = (Consumer(world, name, "t").join() for name in ("m1", "m2"))
    settle_members(world, first, second)
    for _ in range(SESSION_S):
        world.wait(1)
        first.beat()
    assert world.contents().members.keys() == {"m1"}
    assert first.has == ALL


def test_a_member_that_does_not_revoke_in_time_is_removed(world: ConsumerWorld) -> None:
    world.come("m1", "t")
    world.wait(1)
    second = Consumer(world, "m2", "t").join()
    for _ in range(REBALANCE_MS // 1000):
        world.beat("m1", 2)
        second.beat()
        world.wait(1)
    assert world.beat("m1", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    settle_members(world, second)
    assert second.has == ALL


def test_a_member_that_gave_up_in_time_is_left_alone(world: ConsumerWorld) -> None:
    first, second = Consumer(world, "m1", "t").join(), Consumer(world, "m2", "t").join()
    settle_members(world, first, second)
    for _ in range(REBALANCE_MS // 1000 + 1):
        world.wait(1)
        first.beat()
        second.beat()
    assert world.contents().members.keys() == {"m1", "m2"}


def test_a_member_that_leaves_while_it_revokes_may_rejoin(world: ConsumerWorld) -> None:
    world.come("m1", "t", rebalance_timeout_ms=2000)
    world.wait(1)
    second = Consumer(world, "m2", "t").join()
    world.beat("m1", 2)
    world.beat("m1", -1)
    first = Consumer(world, "m1", "t", rebalance_timeout_ms=60_000).join()
    settle_members(world, first, second)
    assert world.contents().members.keys() == {"m1", "m2"}


def test_a_timeout_of_less_than_nothing_is_none(world: ConsumerWorld) -> None:
    world.come("m1", "t", rebalance_timeout_ms=-7)
    world.wait(1)
    second = Consumer(world, "m2", "t").join()
    assert world.beat("m1", 2).error_code == 0
    settle_members(world, second)
    assert second.has == ALL


def test_most_votes_choose_the_assignor(world: ConsumerWorld) -> None:
    world.come("m1", "t", server_assignor="range")
    assert world.coordinator.describe_consumer_group(GROUP)[0].assignor_name == "range"
    world.come("m2", "t", server_assignor="uniform")
    world.come("m3", "t", server_assignor="uniform")
    assert world.coordinator.describe_consumer_group(GROUP)[0].assignor_name == "uniform"


# Topics


def test_new_partitions_are_given_out(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", "t").join()
    world.wait(1)
    world.set_topics(t=5, u=2)
    assert member.beat().has == {"t": {0, 1, 2, 3, 4}}
    assert member.epoch == 3


def test_a_topic_that_comes_later_is_given_out(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", "later").join()
    assert (member.epoch, member.has) == (2, {})
    world.wait(1)
    world.set_topics(later=1)
    assert member.beat().has == {"later": {0}}


def test_a_deleted_topic_is_taken_away(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", "t", "u").join()
    world.wait(1)
    world.set_topics(u=2)
    assert member.beat().has == {"u": {0, 1}}


def test_a_topic_that_is_made_again_is_another_one(world: ConsumerWorld) -> None:
    world.come("m", "t")
    world.wait(1)
    world.publish(make_topic("t", 1, generation=1))
    answer = world.beat("m", 2)
    assert world.read(answer) == {}
    after = world.beat("m", 2, topic_partitions=[])
    assert (after.member_epoch, world.read(after)) == (3, {"t": {0}})


def test_topics_without_subscribers_change_nothing(world: ConsumerWorld) -> None:
    world.come("m", "t")
    world.set_topics(t=4, u=2, v=9)
    assert world.beat("m", 2).member_epoch == 2
    assert world.contents().epoch == 2
