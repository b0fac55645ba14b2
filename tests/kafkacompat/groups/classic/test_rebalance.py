"""Rebalances: which members the group waits for, how long, and the responses to the others."""

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.wire.apis.join_group import JoinGroupResponse
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import DELAY_S, GROUP, REBALANCE_S, SESSION_S, World, is_waiting, take_response

# The first rebalance


def test_the_first_members_are_given_time_to_arrive_together() -> None:
    world = World()
    _, answer = world.join_twice()
    world.clock.advance(DELAY_S - 0.001)
    assert is_waiting(answer)
    world.clock.advance(0.001)
    assert take_response(answer).generation_id == 1


def test_each_newcomer_extends_the_time_but_not_beyond_the_rebalance_timeout() -> None:
    world = World()
    answers = []
    for _ in range(5):
        answers.append(world.join_twice(rebalance_s=10)[1])
        world.wait(2)
    # 10 s after the first JoinGroup, although the last member joined only 2 s ago.
    assert {take_response(answer).generation_id for answer in answers} == {1}
    assert [len(take_response(answer).members) for answer in answers] == [5, 0, 0, 0, 0]


def test_without_a_delay_the_generation_begins_in_the_next_turn_of_the_reactor() -> None:
    world = World(group_initial_rebalance_delay_ms=0)
    _, first = world.join_twice()
    _, second = world.join_twice()
    assert is_waiting(first)
    world.turn()
    world.turn()
    assert take_response(first).generation_id == take_response(second).generation_id == 1


def test_all_members_that_left_during_the_first_rebalance_leave_no_group() -> None:
    world = World()
    member_id, answer = world.join_twice()
    assert world.leave(member_id) == [ErrorCode.NONE]
    assert take_response(answer).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    world.clock.advance(DELAY_S)
    assert world.coordinator.list() == []


# Further rebalances


def rejoin(world: World, members: list[str]) -> list[Deferred[JoinGroupResponse]]:
    answers = [world.join(member_id) for member_id in members]
    return [answer for answer in answers if isinstance(answer, Deferred)]


def test_a_rebalance_ends_when_all_known_members_have_joined() -> None:
    world = World()
    members = world.stable(3)
    _, new = world.join_twice()
    assert [world.heartbeat(member_id, 1) for member_id in members] == [ErrorCode.REBALANCE_IN_PROGRESS] * 3
    answers = [new, *rejoin(world, members[:2])]
    assert all(map(is_waiting, answers))
    answers += rejoin(world, members[2:])
    assert {take_response(answer).generation_id for answer in answers} == {2}


def test_a_member_on_its_way_in_is_waited_for() -> None:
    world = World()
    members = world.stable(1)
    member_id = take_response(world.join()).member_id
    (answer,) = rejoin(world, members)
    assert is_waiting(answer)
    world.join(member_id)
    assert {member.member_id for member in take_response(answer).members} == {*members, member_id}


def test_a_member_on_its_way_in_that_never_comes_is_waited_for_no_longer_than_its_session() -> None:
    world = World()
    members = world.stable(1)
    world.join(session_s=6)
    (answer,) = rejoin(world, members)
    world.clock.advance(6)
    assert len(take_response(answer).members) == 1


def test_a_member_on_its_way_in_that_leaves_is_not_waited_for() -> None:
    world = World()
    members = world.stable(1)
    member_id = take_response(world.join()).member_id
    (answer,) = rejoin(world, members)
    assert world.leave(member_id) == [ErrorCode.NONE]
    assert len(take_response(answer).members) == 1


def test_a_member_that_does_not_rejoin_in_time_is_removed() -> None:
    world = World()
    members = world.stable(3, rebalance_s=20)
    (answer,) = rejoin(world, members[:1])
    for _ in range(REBALANCE_S // 5):
        world.heartbeat(members[1], 1)  # alive, but it does not join
        world.clock.advance(5)
    assert take_response(answer).generation_id == 2
    assert world.heartbeat(members[1], 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_most_patient_member_decides_how_long_is_waited() -> None:
    world = World()
    first, _ = world.join_twice(rebalance_s=20, session_s=100)
    second, _ = world.join_twice(rebalance_s=40, session_s=100)
    world.clock.advance(DELAY_S)
    world.clock.advance(DELAY_S)
    late = world.sync(second, 1)
    now_synced = world.sync(first, 1, {})
    assert take_response(now_synced).error_code == take_response(late).error_code == 0
    answer = world.join(first, session_s=100, rebalance_s=20)
    world.clock.advance(39)
    assert is_waiting(answer)
    world.clock.advance(1)
    assert [member.member_id for member in take_response(answer).members] == [first]


def test_when_the_leader_does_not_join_in_time_another_leads() -> None:
    world = World()
    members = world.stable(2, session_s=100)
    world.join_twice(session_s=100)
    answer = world.join(members[1], session_s=100)
    world.clock.advance(REBALANCE_S)
    joined = take_response(answer)
    assert joined.leader != members[0]
    assert joined.generation_id == 2


def test_when_the_leader_leaves_another_leads() -> None:
    world = World()
    members = world.stable(2)
    assert world.leave(members[0]) == [ErrorCode.NONE]
    (answer,) = rejoin(world, members[1:])
    assert take_response(answer).leader == members[1]


def test_when_all_are_gone_the_group_is_empty_and_says_so_in_the_log() -> None:
    world = World()
    members = world.stable(2)
    world.leave(*members)
    assert world.state() == "Empty"
    assert world.restarted().state() == "Empty"
    _, answer = world.join_twice()
    world.clock.advance(DELAY_S)
    assert take_response(answer).generation_id == 3, "generations grow, also through an empty one"


# The assignment


def test_the_assignment_is_owed_within_the_rebalance_timeout() -> None:
    world = World()
    members = world.form(3, session_s=100)
    follower = world.sync(members[1], 1)
    world.clock.advance(REBALANCE_S)
    # The leader and the third member never sent SyncGroup: they are removed, and the second member rejoins.
    assert take_response(follower).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert [world.heartbeat(member_id, 1) for member_id in members] == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]


def test_a_member_that_does_not_sync_in_time_is_removed() -> None:
    world = World()
    members = world.form(2, session_s=100)
    world.sync(members[0], 1, {})
    assert world.state() == "Stable"
    world.clock.advance(REBALANCE_S)
    assert world.heartbeat(members[1], 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.state() == "PreparingRebalance"


def test_no_sync_is_overdue_after_all_members_synced() -> None:
    world = World()
    world.stable(2, session_s=100)
    world.clock.advance(REBALANCE_S)
    assert world.state() == "Stable"


def test_a_change_between_join_and_sync_makes_all_members_rejoin() -> None:
    world = World()
    members = world.form(3)
    follower = world.sync(members[1], 1)
    world.leave(members[2])
    assert take_response(follower).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.state() == "PreparingRebalance"


def test_an_assignment_of_an_older_generation_is_forgotten_when_the_next_fails() -> None:
    world = World()
    members = world.stable(2)
    joining = rejoin(world, members)
    assert {take_response(answer).generation_id for answer in joining} == {2}
    world.leave(members[1])
    (member,) = world.coordinator.describe(GROUP).members
    assert member.member_assignment == b""


# Sessions


@pytest.mark.parametrize("story", ["form", "stable"])
def test_a_silent_member_is_out_after_its_session_timeout(story: str) -> None:
    world = World()
    members = getattr(world, story)(2)
    world.clock.advance(SESSION_S - 1)
    world.heartbeat(members[0], 1)
    world.clock.advance(1)
    assert world.heartbeat(members[1], 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(members[0], 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_keep_a_session_however_long() -> None:
    world = World()
    members = world.stable(2)
    for _ in range(20):
        world.clock.advance(SESSION_S - 1)
        assert [world.heartbeat(member_id, 1) for member_id in members] == [ErrorCode.NONE] * 2


def test_commits_keep_a_session() -> None:
    world = World()
    (member_id,) = world.stable(1)
    for _ in range(20):
        world.clock.advance(SESSION_S - 1)
        assert take_response(world.commit(member_id=member_id, generation=1)) == [ErrorCode.NONE]


def test_a_member_that_waits_for_its_generation_does_not_expire() -> None:
    world = World()
    members = world.stable(2)
    answer = world.join(members[0])
    for _ in range(3):
        world.clock.advance(SESSION_S - 1)
        world.heartbeat(members[1], 1)
    assert is_waiting(answer)
    world.join(members[1])
    assert take_response(answer).generation_id == 2


def test_a_member_that_waits_for_its_assignment_does_not_expire() -> None:
    world = World()
    members = world.form(2)
    follower = world.sync(members[1], 1)
    for _ in range(3):
        world.clock.advance(SESSION_S - 1)
        world.heartbeat(members[0], 1)
    assert is_waiting(follower)
    world.sync(members[0], 1, {members[1]: b"mine"})
    assert take_response(follower).assignment == b"mine"
    world.clock.advance(SESSION_S)
    assert world.heartbeat(members[1], 1) is ErrorCode.UNKNOWN_MEMBER_ID, "its session goes on from the answer"


def test_an_expired_session_completes_the_rebalance() -> None:
    world = World()
    members = world.stable(2)
    answer = world.join(members[0])
    world.clock.advance(SESSION_S)
    assert len(take_response(answer).members) == 1


def test_heartbeats_set_no_timers() -> None:
    world = World()
    members = world.stable(3)
    before = len(world.clock.calls)
    for _ in range(100):
        for member_id in members:
            world.heartbeat(member_id, 1)
    assert len(world.clock.calls) == before
