"""Subscriptions by pattern."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.groups.consumer import pattern_subscriptions
from kafkacompat.groups.consumer.records import PatternKey
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.support import INTERVAL_S, Consumer, ConsumerWorld, settle_members
from tests.kafkacompat.groups.support import is_waiting, take_response

PATTERN: dict[str, Any] = {"subscribed_topic_names": None, "subscribed_topic_regex": "[tx].*"}
LEAST_S = 10
REFRESH_S = 600


@pytest.fixture
def world() -> ConsumerWorld:
    return ConsumerWorld()


def turn_world(world: ConsumerWorld) -> ConsumerWorld:
    world.turn(10)
    return world


def test_a_join_with_a_pattern_waits_for_its_topics(world: ConsumerWorld) -> None:
    joining = world.send("m", 0, rebalance_timeout_ms=1, topic_partitions=[], **PATTERN)
    assert is_waiting(joining)
    turn_world(world)
    answer = take_response(joining)
    assert world.contents().patterns["[tx].*"].topics == {"t"}
    assert (answer.member_epoch, world.read(answer)) == (2, {"t": {0, 1, 2, 3}})


def test_a_pattern_that_comes_later_is_matched_beside_the_request(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", "u").join()
    world.wait(1)
    member.beat(**PATTERN)
    assert (member.epoch, member.has) == (2, {"u": {0, 1}})
    turn_world(world)
    member.beat()
    assert (member.epoch, member.has) == (3, {"t": {0, 1, 2, 3}, "u": {0, 1}})


def test_a_waiting_join_may_be_refused() -> None:
    world = ConsumerWorld(consumer_settings=ConsumerGroupSettings(max_size=1))
    joining = world.send("m", 0, rebalance_timeout_ms=1, topic_partitions=[], **PATTERN)
    world.come("n", "t")
    turn_world(world)
    assert take_response(joining).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_second_member_finds_it_matched(world: ConsumerWorld) -> None:
    first = Consumer(world, "m1", **PATTERN).join()
    turn_world(world)
    first.beat()
    world.wait(1)
    second = Consumer(world, "m2", **PATTERN).join()
    settle_members(world, first, second)
    assert sorted(map(len, (first.has["t"], second.has["t"]))) == [2, 2]


def test_a_bad_pattern_is_refused(world: ConsumerWorld) -> None:
    answer = world.come("m", **PATTERN | {"subscribed_topic_regex": "(?=t)"})
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not world.coordinator._registry.by_id


def test_names_and_a_pattern_go_together(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", **PATTERN | {"subscribed_topic_names": ["u"]}).join()
    turn_world(world)
    world.wait(1)
    settle_members(world, member)
    assert member.has == {"t": {0, 1, 2, 3}, "u": {0, 1}}


def test_a_new_topic_is_found_with_a_heartbeat(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", **PATTERN).join()
    turn_world(world)
    world.wait(LEAST_S + 1)
    member.beat()
    world.set_topics(t=4, u=2, x=1)
    member.beat()
    turn_world(world)
    world.wait(1)
    assert member.beat().has == {"t": {0, 1, 2, 3}, "x": {0}}


def test_patterns_are_not_matched_again_within_ten_seconds(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", **PATTERN).join()
    turn_world(world)
    world.set_topics(t=4, u=2, x=1)
    world.wait(1)
    member.beat()
    turn_world(world)
    assert world.contents().patterns["[tx].*"].topics == {"t"}
    world.wait(LEAST_S)
    member.beat()
    turn_world(world)
    assert world.contents().patterns["[tx].*"].topics == {"t", "x"}


def test_they_are_matched_from_time_to_time(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", **PATTERN).join()
    turn_world(world)
    first = world.contents().patterns["[tx].*"].timestamp_ms
    for _ in range(REFRESH_S // INTERVAL_S + 1):
        world.wait(INTERVAL_S)
        member.beat()
    turn_world(world)
    assert world.contents().patterns["[tx].*"].timestamp_ms > first
    assert world.contents().epoch == 2


def test_a_pattern_is_forgotten_with_its_last_member(world: ConsumerWorld) -> None:
    for name in ("m1", "m2"):
        world.come(name, **PATTERN)
    turn_world(world)
    world.beat("m1", -1)
    assert world.contents().patterns
    world.beat("m2", -1)
    assert not world.contents().patterns


def test_a_pattern_is_given_up_for_names(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", **PATTERN).join()
    turn_world(world)
    world.wait(1)
    settle_members(world, member.beat())
    member.beat(subscribed_topic_regex="", subscribed_topic_names=["u"])
    member.has = {}
    settle_members(world, member)
    assert member.has == {"u": {0, 1}}
    assert not world.contents().patterns


def test_a_replacement_of_a_static_member_has_its_own_subscription(world: ConsumerWorld) -> None:
    world.come("m1", instance_id="i", server_assignor="range", **PATTERN)
    world.wait(1)
    world.beat("m1", -2, instance_id="i")
    back = Consumer(world, "m2", "u", instance_id="i").join()
    settle_members(world, back)
    assert back.has == {"u": {0, 1}}
    assert (world.contents().patterns, world.contents().members["m2"].assignor) == ({}, None)


def test_patterns_are_matched_again_after_a_restart_with_new_topics(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", **PATTERN).join()
    turn_world(world)
    member.beat()
    world.wait(LEAST_S + 1)
    after = ConsumerWorld(world.log)
    after.clock.rightNow = world.clock.seconds()
    after.turn(100)
    assert after.contents().patterns == world.contents().patterns
    after.set_topics(t=4, x=1)
    member.world = after
    member.beat()
    turn_world(after)
    assert member.beat().has == {"t": {0, 1, 2, 3}, "x": {0}}


def test_a_pattern_that_takes_too_much_work_is_left(world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_subscriptions, "MAX_SECONDS", 0)
    monkeypatch.setattr(pattern_subscriptions, "TURN_SECONDS", 0)
    Consumer(world, "m", **PATTERN).join()
    turn_world(world)
    assert len(world.contents().patterns["[tx].*"].topics) <= 1


def test_topics_of_patterns_that_there_is_no_memory_for_are_not_taken() -> None:
    world = ConsumerWorld(member_metadata_max_bytes=10_000)
    world.set_topics(**{f"t{number}": 1 for number in range(200)})
    world.come("m", "t1")
    world.beat("m", 2, **PATTERN)
    turn_world(world)
    assert world.contents().patterns == {}
    assert world.coordinator._budget.used_bytes < 10_000
    world.set_topics(t1=1, t2=1)
    world.beat("m", 2)
    turn_world(world)
    assert world.contents().patterns["[tx].*"].topics == {"t1", "t2"}


def test_patterns_are_looked_up_again_after_that_failed(world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.come("m", "t")
    with monkeypatch.context() as broken:
        broken.delattr(pattern_subscriptions, "MAX_SECONDS")
        world.beat("m", 2, **PATTERN)
        turn_world(world)
    world.beat("m", 2)
    turn_world(world)
    assert world.contents().patterns["[tx].*"].topics == {"t"}


def test_new_topics_are_found_though_the_log_refused_them_at_first(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", **PATTERN).join()
    turn_world(world)
    world.wait(LEAST_S + 1)
    world.set_topics(t=4, x=1)
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    world.beat("m", member.epoch)
    turn_world(world)
    world.log.refuse_with = None
    member.beat()
    turn_world(world)
    assert world.contents().patterns["[tx].*"].topics == {"t", "x"}


def looked_up(world: ConsumerWorld) -> int:
    """The number of records with the topics of a pattern."""
    kind = PatternKey.TYPE.to_bytes(2, "big")
    return sum(bytes(record.key or b"").startswith(kind) and record.value is not None for record in world.log.records())


def test_patterns_are_matched_once_for_all_members_and_all_heartbeats(world: ConsumerWorld) -> None:
    members = [Consumer(world, name, **PATTERN).join() for name in ("m1", "m2")]
    assert looked_up(world) == 1
    for count in range(2, 4):
        world.wait(LEAST_S + 1)
        world.set_topics(t=4, u=2, **{f"x{number}": 1 for number in range(count)})
        for member in members:
            member.beat()
        turn_world(world)
        assert looked_up(world) == count
        world.wait(LEAST_S + 1)
        settle_members(world, *members)
        assert looked_up(world) == count
    assert world.contents().patterns["[tx].*"].topics == {"t", "x0", "x1", "x2"}


def test_a_group_that_is_gone_meanwhile_is_left_alone(world: ConsumerWorld) -> None:
    world.come("m", "t")
    world.beat("m", 2, **PATTERN)
    world.beat("m", -1)
    world.coordinator.delete("g")
    turn_world(world)
    assert not world.coordinator._registry.by_id


def test_a_pattern_that_was_given_up_meanwhile_is_forgotten(world: ConsumerWorld) -> None:
    world.come("m", "t")
    world.beat("m", 2, **PATTERN)
    world.beat("m", 2, subscribed_topic_regex="")
    turn_world(world)
    assert not world.contents().patterns
    assert looked_up(world) == 0
