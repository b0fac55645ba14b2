"""Classic groups that become consumer groups while they are used; for the way back see test_conversion_back."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.wire.consumer_protocol import ConsumerProtocolAssignment, write_assignment
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.classic_support import Classic, settle_all, write_partitions, write_topics
from tests.kafkacompat.groups.consumer.support import Consumer, ConsumerWorld, topic_id
from tests.kafkacompat.groups.support import GROUP, take_response
from tests.kafkacompat.groups.support import SESSION_S as SESSION_TIMEOUT_S

ALL = {"t": {0, 1, 2, 3}}


@pytest.fixture
def world() -> ConsumerWorld:
    return ConsumerWorld()


def classic_world(count: int = 2, **options: Any) -> tuple[ConsumerWorld, list[str]]:
    """A stable classic group of consumers that share t."""
    world = ConsumerWorld(**options)
    metadata = write_topics("t")
    members = world.form(count, protocols=[("range", metadata)])
    given = {
        member_id: write_partitions(t=set(range(4)) - ({0, 1} if index else {2, 3}))
        for index, member_id in enumerate(members)
    }
    for member_id in reversed(members):
        world.sync(member_id, 1, given if member_id == members[0] else None)
    assert world.state() == "Stable"
    return world, members


def find_classic_group(world: ConsumerWorld) -> ClassicGroup:
    group = world.coordinator._registry.by_id[GROUP]
    assert isinstance(group, ClassicGroup)
    return group


def test_a_classic_group_goes_on_with_a_member_of_the_new_protocol() -> None:
    world, members = classic_world()
    world.commit(member_id=members[0], generation=1)
    newcomer = Consumer(world, "new", "t").join()
    contents = world.contents()
    assert contents.members.keys() == {*members, "new"}
    assert {member_id: contents.members[member_id].member_epoch for member_id in members} == dict.fromkeys(members, 1)
    assert world.committed() == 7
    olds = [Classic(world, "t", member_id=member_id) for member_id in members]
    for index, old in enumerate(olds):
        old.generation, old.has = 1, {"t": {2, 3} if index else {0, 1}}
        assert old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    settle_all(world, newcomer, *olds)
    shares = [newcomer.has["t"], *(old.has["t"] for old in olds)]
    assert sorted(map(len, shares)) == [1, 1, 2]
    assert set().union(*shares) == ALL["t"]
    assert world.group().state_name == "Stable"


def test_partitions_kept_between_rebalances_stay_with_their_members() -> None:
    """Between two rebalances no member has an assignment, so the partitions that each member reports to own count."""
    world, members = classic_world()
    owned = [{2, 3}, {0, 1}]
    for member_id, some in zip(members, owned, strict=True):
        world.join(member_id, protocols=[("range", write_topics("t", t=some))])
    world.join_twice(protocols=[("range", write_topics("t"))])
    assert (world.state(), {member.assignment for member in find_classic_group(world).members.values()}) == (
        "PreparingRebalance",
        {b""},
    )
    newcomer = Consumer(world, "new", "t").join()
    assert newcomer.has == {}
    for member_id, some in zip(members, owned, strict=True):
        assert world.contents().members[member_id].assigned[topic_id("t")].keys() == some


def test_members_waiting_in_a_classic_rebalance_must_rejoin() -> None:
    world, members = classic_world(1)
    waiting = [world.join_twice(protocols=[("range", write_topics("t"))])[1]]
    world.come("new", "t")
    assert take_response(waiting[0]).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert members[0] in world.contents().members


def test_a_converted_group_is_the_same_after_a_restart() -> None:
    world, members = classic_world()
    world.commit(member_id=members[0], generation=1)
    world.come("new", "t")
    after = ConsumerWorld(world.log)
    after.turn(100)
    assert after.contents() == world.contents()
    assert after.committed() == 7


def test_classic_members_that_stay_silent_are_taken_out_of_the_converted_group() -> None:
    world, members = classic_world()
    newcomer = Consumer(world, "new", "t").join()
    for _ in range(SESSION_TIMEOUT_S + 1):
        world.wait(1)
        newcomer.beat()
    assert members[0] not in world.contents().members
    assert newcomer.has == ALL


def test_topics_that_are_gone_are_left_out_on_the_way_up_and_down() -> None:
    world, members = classic_world(1)
    world.set_topics(u=2)
    newcomer = Consumer(world, "new", "u").join()
    assert world.contents().members[members[0]].assigned == {}
    old = Classic(world, "t", "u", member_id=members[0]).join()
    settle_all(world, newcomer, old)
    assert old.has == {"u": {0}} or old.has == {"u": {1}}
    world.set_topics(t=1)
    world.beat("new", -1)
    assert world.state() == "PreparingRebalance"


def test_an_empty_classic_group_becomes_a_consumer_group_whatever_the_policy() -> None:
    world, members = classic_world(1, consumer_settings=ConsumerGroupSettings(migration_policy="DISABLED"))
    world.commit(member_id=members[0], generation=1)
    world.leave(*members)
    assert world.come("new", "t").error_code == 0
    assert world.committed() == 7
    after = ConsumerWorld(world.log)
    after.turn(100)
    assert (after.committed(), after.group().state_name) == (7, "Stable")


@pytest.mark.parametrize("policy", ["DISABLED", "DOWNGRADE"])
def test_a_policy_may_forbid_it(policy: str) -> None:
    world, members = classic_world(consumer_settings=ConsumerGroupSettings(migration_policy=policy))
    assert world.come("new", "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.heartbeat(members[0], 1) == 0


def test_groups_of_other_protocol_types_are_not_converted(world: ConsumerWorld) -> None:
    world.stable(protocol_type="connect", protocols=[("default", b"")])
    assert world.come("new", "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_with_unreadable_assignments_is_not_converted(world: ConsumerWorld) -> None:
    members = world.stable(1)
    assert world.come("new", "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.heartbeat(members[0], 1) == 0


def test_a_group_with_a_custom_assignor_is_not_converted(world: ConsumerWorld) -> None:
    members = world.form(1)
    own = write_assignment(ConsumerProtocolAssignment(user_data=b"mine"), 1)
    world.sync(members[0], 1, {members[0]: own})
    assert world.come("new", "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_with_two_readers_of_a_partition_is_not_converted(world: ConsumerWorld) -> None:
    members = world.form(2, protocols=[("range", write_topics("t"))])
    for member_id in reversed(members):
        world.sync(member_id, 1, dict.fromkeys(members, write_partitions(t={0})) if member_id == members[0] else None)
    assert world.come("new", "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.heartbeat(members[0], 1) == 0


def test_a_group_that_is_too_large_is_not_converted() -> None:
    world, _ = classic_world(consumer_settings=ConsumerGroupSettings(max_size=1))
    assert world.come("new", "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_conversion_that_the_log_refuses_leaves_a_classic_group() -> None:
    world, members = classic_world()
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.come("new", "t").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.refuse_with = None
    world.turn(20)
    assert world.state() == "Stable"
    assert world.heartbeat(members[0], 1) == 0
