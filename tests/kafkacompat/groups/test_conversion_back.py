"""Consumer groups that become classic ones again while they are used."""

from __future__ import annotations

import pytest

from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.classic_support import Classic, read_partitions, settle_all, write_topics
from tests.kafkacompat.groups.consumer.support import SESSION_S, Consumer, ConsumerWorld
from tests.kafkacompat.groups.support import GROUP, take_response
from tests.kafkacompat.groups.support import SESSION_S as SESSION_TIMEOUT_S

ALL = {"t": {0, 1, 2, 3}}


@pytest.fixture
def world() -> ConsumerWorld:
    return ConsumerWorld()


def test_a_group_is_classic_again_when_the_last_member_of_the_new_protocol_leaves(world: ConsumerWorld) -> None:
    anchor = Consumer(world, "m", "t").join()
    classic = Classic(world, "t").join()
    settle_all(world, anchor, classic)
    world.commit(member_id=classic.member_id, generation=classic.generation)
    world.beat("m", -1)
    group = world.coordinator._registry.by_id[GROUP]
    assert isinstance(group, ClassicGroup)
    assert (group.generation_id, world.state(), world.committed()) == (classic.generation, "PreparingRebalance", 7)
    answer = world.join(classic.member_id, protocols=[("range", write_topics("t"))])
    assert take_response(answer).generation_id == classic.generation + 1


def test_a_conversion_survives_unreadable_subscriptions(world: ConsumerWorld) -> None:
    world.come("m", "t")
    protocols = [("range", write_topics("t")), ("roundrobin", b"")]
    joined = take_response(world.join(protocols=protocols, version=3))
    again = take_response(world.join(joined.member_id, protocols=protocols[::-1], version=3))
    assert (joined.error_code, again.error_code) == (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR)
    world.join(protocols=[("roundrobin", write_topics("t"))], version=3)
    world.beat("m", -1)
    assert world.state() == "PreparingRebalance"


def test_a_conversion_is_in_the_log(world: ConsumerWorld) -> None:
    anchor = Consumer(world, "m", "t").join()
    classic = Classic(world, "t").join()
    settle_all(world, anchor, classic)
    world.commit(member_id=classic.member_id, generation=classic.generation)
    world.beat("m", -1)
    after = ConsumerWorld(world.log)
    after.turn(100)
    assert (after.state(), after.committed()) == ("Stable", 7)
    # The rebalance has not ended: no member has the partitions of the member that left.
    assert after.heartbeat(classic.member_id, classic.generation) == ErrorCode.ILLEGAL_GENERATION
    after.join(classic.member_id, protocols=[("range", write_topics("t", "u"))])
    assert after.state() == "CompletingRebalance"


def test_a_conversion_without_a_rebalance_survives_a_restart(world: ConsumerWorld) -> None:
    world.come("m", "t", instance_id="i")
    world.beat("m", -2, instance_id="i")
    answer = take_response(world.join(instance="i", protocols=[("range", write_topics("t"))]))
    after = ConsumerWorld(world.log)
    after.turn(100)
    assert after.heartbeat(answer.member_id, answer.generation_id, instance="i") == 0


def test_a_session_that_ends_does_it_as_well(world: ConsumerWorld) -> None:
    Consumer(world, "m", "t").join()
    classic = Classic(world, "t").join()
    for _ in range(SESSION_S + 1):
        world.wait(1)
        classic.beat()
        if isinstance(world.coordinator._registry.by_id[GROUP], ClassicGroup):
            return
    raise AssertionError("it is a consumer group still")


def test_members_that_stay_silent_are_taken_out_of_the_classic_group(world: ConsumerWorld) -> None:
    anchor = Consumer(world, "m", "t").join()
    classic = Classic(world, "t").join()
    settle_all(world, anchor, classic)
    world.beat("m", -1)
    world.wait(SESSION_TIMEOUT_S + 1)
    assert world.state() == "Empty"


def test_a_group_that_is_too_large_stays_a_consumer_group() -> None:
    world = ConsumerWorld(consumer_settings=ConsumerGroupSettings(classic_max_size=1))
    anchor = Consumer(world, "m", "t").join()
    classics = [Classic(world, "t").join() for _ in range(2)]
    settle_all(world, anchor, *classics)
    world.beat("m", -1)
    assert len(world.contents().members) == 2
    world.leave(classics[0].member_id)
    assert isinstance(world.coordinator._registry.by_id[GROUP], ClassicGroup)


@pytest.mark.parametrize("policy", ["UPGRADE", "DISABLED"])
def test_a_policy_may_keep_it_a_consumer_group(policy: str) -> None:
    world = ConsumerWorld()
    anchor = Consumer(world, "m", "t").join()
    classic = Classic(world, "t").join()
    settle_all(world, anchor, classic)
    after = ConsumerWorld(world.log, consumer_settings=ConsumerGroupSettings(migration_policy=policy))
    after.turn(100)
    after.beat("m", -1)
    assert after.contents().members.keys() == {classic.member_id}


def test_a_static_member_that_comes_back_with_the_classic_protocol_makes_it_classic(world: ConsumerWorld) -> None:
    world.come("m", "t", instance_id="i")
    world.beat("m", -2, instance_id="i")
    answer = take_response(world.join(instance="i", protocols=[("range", write_topics("t"))]))
    assert (answer.error_code, answer.generation_id) == (0, 2)
    synced = take_response(world.sync(answer.member_id, 2, instance="i"))
    assert (synced.error_code, read_partitions(synced.assignment)) == (0, ALL)
    assert world.state() == "Stable"


def test_members_with_another_assignment_must_rejoin(world: ConsumerWorld) -> None:
    world.come("m", "t", instance_id="i")
    world.beat("m", -2, instance_id="i")
    world.wait(1)
    other = Classic(world, "t").join()
    assert (other.generation, other.has) == (3, {})
    back = take_response(world.join(instance="i", protocols=[("range", write_topics("t"))]))
    assert (back.error_code, world.state()) == (0, "PreparingRebalance")
    assert world.heartbeat(other.member_id, other.generation) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_policy_may_keep_it_a_consumer_group_of_one_that_speaks_the_classic_protocol() -> None:
    world = ConsumerWorld(consumer_settings=ConsumerGroupSettings(migration_policy="UPGRADE"))
    world.come("m", "t", instance_id="i")
    world.beat("m", -2, instance_id="i")
    back = Classic(world, "t", instance="i").join()
    assert (back.has, world.group().state_name) == (ALL, "Stable")


def test_a_static_classic_member_is_replaced_by_one_of_the_new_protocol(world: ConsumerWorld) -> None:
    anchor = Consumer(world, "m", "u").join()
    world.wait(1)
    classic = Classic(world, "t", instance="i").join()
    settle_all(world, anchor, classic)
    assert classic.has == ALL
    back = world.come("n", "t", instance_id="i")
    assert (back.error_code, world.read(back)) == (0, ALL)
    assert world.contents().members["n"].classic is None
    assert world.heartbeat(classic.member_id, classic.generation, instance="i") == ErrorCode.FENCED_INSTANCE_ID


def test_an_empty_consumer_group_becomes_a_classic_one(world: ConsumerWorld) -> None:
    world.come("m", "t")
    world.commit(member_id="m", generation=2)
    world.beat("m", -1)
    world.form()
    assert world.committed() == 7
    after = ConsumerWorld(world.log)
    after.turn(100)
    assert after.committed() == 7
    assert isinstance(after.coordinator._registry.by_id[GROUP], ClassicGroup)
