"""Static members (KIP-345): an instance id keeps its place through restarts of its process."""

import pytest

from kafkacompat.wire.apis.join_group import JoinGroupResponse
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import DELAY_S, SESSION_S, World, is_waiting, take_response, write_topics

OTHER = (("range", write_topics("other")),)


def make_stable_group(world: World, count: int = 2, session_s: float = SESSION_S) -> list[str]:
    """A stable group of static members i0, i1 …; the leader comes first."""
    answers = [world.join(instance=f"i{number}", session_s=session_s) for number in range(count)]
    for _ in range(count):
        world.clock.advance(DELAY_S)
    members = [take_response(answer).member_id for answer in answers]
    for number, member_id in reversed(list(enumerate(members))):
        assignments = {member: member.encode() for member in members} if number == 0 else {}
        world.sync(member_id, 1, assignments, instance=f"i{number}")
    assert world.state() == "Stable"
    return members


def test_a_static_member_gets_its_id_from_its_instance_and_joins_at_once() -> None:
    world = World()
    answer = world.join(instance="i0")
    world.clock.advance(DELAY_S)
    assert take_response(answer).member_id.startswith("i0-")
    assert [member.group_instance_id for member in take_response(answer).members] == ["i0"]


def test_a_follower_that_comes_back_keeps_its_place_without_a_rebalance() -> None:
    world = World()
    leader, old = make_stable_group(world)
    back = take_response(world.join(instance="i1"))
    assert (back.error_code, back.generation_id, back.leader, back.members) == (0, 1, leader, [])
    assert back.member_id != old
    assert not back.skip_assignment
    assert take_response(world.sync(back.member_id, 1, instance="i1")).assignment == old.encode()
    assert world.heartbeat(back.member_id, 1, instance="i1") is ErrorCode.NONE
    assert world.heartbeat(leader, 1, instance="i0") is ErrorCode.NONE


@pytest.mark.parametrize("version", [5, 8, 9])
def test_a_leader_that_comes_back_does_not_assign_again(version: int) -> None:
    world = World()
    old, follower = make_stable_group(world)
    back = take_response(world.join(instance="i0", version=version))
    assert (back.error_code, back.generation_id) == (0, 1)
    if version >= 9:
        assert (back.leader, back.skip_assignment) == (back.member_id, True)
        assert {member.member_id for member in back.members} == {back.member_id, follower}
    else:
        assert (back.leader, back.skip_assignment, back.members) == (old, False, [])


def test_the_old_id_is_fenced_everywhere() -> None:
    world = World()
    _, old = make_stable_group(world)
    new = take_response(world.join(instance="i1")).member_id
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(old, 1, instance="i1") is fenced
    assert take_response(world.sync(old, 1, instance="i1")).error_code == fenced
    assert take_response(world.join(old, instance="i1")).error_code == fenced
    assert take_response(world.commit(member_id=old, generation=1, instance="i1")) == [fenced]
    assert world.heartbeat(new, 1, instance="i1") is ErrorCode.NONE


def test_the_new_id_survives_a_restart_of_the_broker() -> None:
    world = World()
    _, old = make_stable_group(world)
    new = take_response(world.join(instance="i1")).member_id
    loaded = world.restarted()
    assert loaded.heartbeat(new, 1, instance="i1") is ErrorCode.NONE
    assert loaded.heartbeat(old, 1, instance="i1") is ErrorCode.FENCED_INSTANCE_ID
    assert take_response(loaded.sync(new, 1, instance="i1")).assignment == old.encode()


def test_the_answer_waits_for_the_log() -> None:
    world = World()
    make_stable_group(world)
    world.log.hold = True
    answer = world.join(instance="i1")
    assert is_waiting(answer)
    world.log.held.pop().succeed()
    assert take_response(answer).generation_id == 1


def test_if_the_log_refuses_the_old_id_stays() -> None:
    world = World()
    _, old = make_stable_group(world)
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    refused = take_response(world.join(instance="i1", protocols=OTHER))
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.heartbeat(old, 1, instance="i1") is ErrorCode.NONE
    world.log.refuse_with = None
    again = take_response(world.join(old, instance="i1"))
    assert (again.error_code, again.generation_id) == (0, 1), "its subscription is the old one as well"


def test_two_that_come_back_one_after_the_other_fence_each_other() -> None:
    world = World()
    make_stable_group(world)
    world.log.hold = True
    first = world.join(instance="i1")
    second = world.join(instance="i1")
    assert take_response(first).error_code == ErrorCode.FENCED_INSTANCE_ID
    for held in world.log.held:
        held.succeed()
    assert take_response(second).error_code == 0
    assert world.heartbeat(take_response(second).member_id, 1, instance="i1") is ErrorCode.NONE


def test_if_the_log_refuses_the_first_of_two_that_come_back_the_second_stays() -> None:
    world = World()
    make_stable_group(world)
    world.log.hold = True
    world.join(instance="i1")
    second = world.join(instance="i1")
    first_write, second_write = world.log.held
    first_write.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert is_waiting(second)
    second_write.succeed()
    assert world.heartbeat(take_response(second).member_id, 1, instance="i1") is ErrorCode.NONE


@pytest.mark.parametrize("refusal", [None, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_a_member_whose_session_ended_while_the_log_was_awaited_still_expires(refusal: ErrorCode | None) -> None:
    world = World(group_min_session_timeout_ms=1000)
    make_stable_group(world, count=1, session_s=1)
    world.log.hold = True
    answer = world.join(instance="i0", session_s=2)
    world.clock.advance(3)
    held = world.log.held.pop()
    held.succeed() if refusal is None else held.fail(refusal)
    assert take_response(answer).generation_id == (1 if refusal is None else -1)
    world.log.hold = False
    assert world.state() == "Stable"
    world.wait(2)
    assert world.state() == "Empty"


def test_a_rebalance_during_an_append_answers_the_join() -> None:
    world = World()
    leader, _ = make_stable_group(world)
    world.log.hold = True
    back = world.join(instance="i1")
    again = world.join(leader, instance="i0")
    assert take_response(back).generation_id == take_response(again).generation_id == 2
    world.log.held.pop().succeed()
    assert world.heartbeat(take_response(back).member_id, 2, instance="i1") is ErrorCode.NONE


def test_a_changed_subscription_alone_does_not_rebalance() -> None:
    world = World()
    make_stable_group(world)
    assert take_response(world.join(instance="i1", protocols=OTHER)).generation_id == 1


def test_a_changed_choice_of_protocol_does() -> None:
    world = World()
    both, flipped = (("a", b""), ("b", b"")), (("b", b""), ("a", b""))
    answers = [world.join(instance="i0", protocols=flipped), world.join(instance="i1", protocols=both)]
    answers.append(world.join(instance="i2", protocols=both))
    world.wait(4 * DELAY_S)
    leader, *followers = (take_response(answer).member_id for answer in answers)
    assert take_response(answers[0]).protocol_name == "a"
    for number, member_id in enumerate(followers, 1):
        world.sync(member_id, 1, instance=f"i{number}")
    world.sync(leader, 1, {}, instance="i0")
    back = world.join(instance="i2", protocols=flipped)
    assert is_waiting(back)
    assert world.state() == "PreparingRebalance"


def test_coming_back_between_join_and_sync_rebalances() -> None:
    world = World()
    answers = [world.join(instance=f"i{number}") for number in range(2)]
    world.wait(3 * DELAY_S)
    leader, follower = (take_response(answer).member_id for answer in answers)
    syncing = world.sync(follower, 1, instance="i1")
    back = world.join(instance="i1")
    assert take_response(syncing).error_code == ErrorCode.FENCED_INSTANCE_ID
    assert is_waiting(back)
    world.join(leader, instance="i0")
    assert take_response(back).generation_id == 2


def test_coming_back_while_members_join_fences_the_one_that_waits() -> None:
    world = World()
    leader, old = make_stable_group(world, count=3)[:2]
    waiting = world.join(leader, instance="i0")
    assert is_waiting(waiting)
    back = world.join(instance="i0")
    fenced: JoinGroupResponse = take_response(waiting)
    assert (fenced.error_code, fenced.member_id) == (ErrorCode.FENCED_INSTANCE_ID, leader)
    assert is_waiting(back)
    assert world.heartbeat(old, 1, instance="i1") is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_that_joins_late_keeps_its_place_until_its_session_ends() -> None:
    world = World()
    leader, late = make_stable_group(world, session_s=100)
    answer = world.join(leader, instance="i0", session_s=100)
    world.wait(60)
    joined = take_response(answer)
    assert joined.generation_id == 2
    assert {member.member_id for member in joined.members} == {leader, late}
    world.sync(leader, 2, {}, instance="i0")
    for _ in range(12):
        world.heartbeat(leader, 2, instance="i0")
        world.wait(10)
    assert world.heartbeat(late, 2, instance="i1") is ErrorCode.UNKNOWN_MEMBER_ID


def test_when_only_static_members_are_left_and_none_joins_the_group_waits_for_their_sessions() -> None:
    world = World()
    members = make_stable_group(world, session_s=100)
    dynamic, answer = world.join_twice(session_s=100)
    world.leave(dynamic)
    assert take_response(answer).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    world.wait(61)
    assert world.state() == "PreparingRebalance"
    assert world.heartbeat(members[0], 1, instance="i0") is ErrorCode.REBALANCE_IN_PROGRESS
    world.wait(101)
    assert world.state() == "Empty"


def test_while_none_has_joined_the_reactor_has_a_rest_whatever_they_ask_for() -> None:
    world = World()
    make_stable_group(world)
    for number in range(2):
        assert not take_response(world.join(instance=f"i{number}", rebalance_s=0)).error_code
    dynamic, _ = world.join_twice(rebalance_s=0)
    world.leave(dynamic)
    world.turn(3)
    assert world.state() == "PreparingRebalance"
    assert all(call.getTime() > world.clock.seconds() for call in world.clock.calls)
