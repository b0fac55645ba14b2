"""JoinGroup: which members may join, and the responses to the others."""

import re
from typing import Any

import pytest

from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import (
    DELAY_S,
    GROUP,
    RANGE,
    SESSION_S,
    World,
    is_waiting,
    take_response,
    write_topics,
)

MINUTE_S = 60


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_s": 5.999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_s": 1800.001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "made-up"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_to_a_new_group_is_refused(request_: dict[str, Any], code: ErrorCode) -> None:
    world = World()
    answer = take_response(world.join(**request_))
    assert (answer.error_code, answer.generation_id) == (code, -1)
    assert world.coordinator.list() == [], "a refused join leaves no group behind"


@pytest.mark.parametrize("session_s", [6, 1800])
def test_the_bounds_of_the_session_timeout_are_allowed(session_s: float) -> None:
    assert take_response(World().join(session_s=session_s)).error_code == ErrorCode.MEMBER_ID_REQUIRED


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("sticky", b""),)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "made-up"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "made-up", "instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({}, ErrorCode.MEMBER_ID_REQUIRED),
    ],
)
@pytest.mark.parametrize("story", ["form", "stable"])
def test_a_join_to_a_group_with_members(story: str, request_: dict[str, Any], code: ErrorCode) -> None:
    world = World()
    getattr(world, story)(2)
    before = world.state()
    assert take_response(world.join(**request_)).error_code == code
    assert world.state() == before


def test_a_new_dynamic_member_is_given_an_id_to_join_with() -> None:
    world = World()
    first = take_response(world.join())
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert re.fullmatch(r"client-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", first.member_id)
    answer = world.join(first.member_id)
    world.clock.advance(DELAY_S)
    joined = take_response(answer)
    assert (joined.error_code, joined.member_id, joined.leader) == (0, first.member_id, first.member_id)


def test_before_version_4_a_new_member_joins_without_an_id() -> None:
    world = World()
    answer = world.join(version=3)
    world.clock.advance(DELAY_S)
    joined = take_response(answer)
    assert joined.member_id.startswith("client-")
    assert joined.leader == joined.member_id


def test_an_unused_member_id_is_forgotten_after_the_session_timeout() -> None:
    world = World()
    member_id = take_response(world.join()).member_id
    world.clock.advance(SESSION_S)
    assert take_response(world.join(member_id)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.coordinator.list() == []


def test_a_pending_id_is_not_for_static_members() -> None:
    world = World()
    member_id = take_response(world.join()).member_id
    assert take_response(world.join(member_id, instance="i")).error_code == ErrorCode.INVALID_REQUEST


def test_only_the_leader_receives_the_members() -> None:
    world = World()
    first, first_answer = world.join_twice(protocols=(("range", b"one"),))
    second, second_answer = world.join_twice(protocols=(("range", b"two"),))
    world.clock.advance(DELAY_S)
    world.clock.advance(DELAY_S)
    leader, follower = take_response(first_answer), take_response(second_answer)
    assert [(member.member_id, member.metadata) for member in leader.members] == [(first, b"one"), (second, b"two")]
    assert follower.members == []
    for answer in (leader, follower):
        assert (answer.generation_id, answer.leader) == (1, first)
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
        assert not answer.skip_assignment


@pytest.mark.parametrize(
    ("preferences", "chosen"),
    [
        (["ab", "ab", "ba"], "a"),
        (["ab", "ba", "ba"], "b"),
        (["abc", "cb", "ca"], "c"),
        (["ab", "b"], "b"),
        (["ab", "ba"], "a"),
    ],
)
def test_the_protocol_is_chosen_by_vote_among_those_that_all_support(preferences: list[str], chosen: str) -> None:
    world = World()
    answers = [world.join_twice(protocols=[(name, b"") for name in names])[1] for names in preferences]
    world.clock.advance(DELAY_S)
    world.clock.advance(DELAY_S)
    assert {take_response(answer).protocol_name for answer in answers} == {chosen}


def test_a_protocol_named_twice_counts_once() -> None:
    world = World()
    _, answer = world.join_twice(protocols=(("a", b"first"), ("a", b"second")))
    world.clock.advance(DELAY_S)
    assert [member.metadata for member in take_response(answer).members] == [b"first"]


# A known member rejoins: state, leader?, changed? -> effect


@pytest.mark.parametrize("is_leader", [True, False])
@pytest.mark.parametrize("is_changed", [True, False])
@pytest.mark.parametrize(
    ("story", "restful"), [("form", {(True, False), (False, False)}), ("stable", {(False, False)})]
)
def test_joining_again(story: str, restful: set[tuple[bool, bool]], is_leader: bool, is_changed: bool) -> None:
    world = World()
    members = getattr(world, story)(2)
    member_id = members[0 if is_leader else 1]
    answer = world.join(member_id, protocols=(("range", write_topics("other")),) if is_changed else RANGE)
    if (is_leader, is_changed) in restful:
        joined = take_response(answer)
        assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, members[0])
        assert [member.member_id for member in joined.members] == (members if is_leader else [])
    else:
        assert is_waiting(answer)
        assert world.state() == "PreparingRebalance"


def test_joining_again_while_the_answer_is_awaited_answers_the_first_request_too() -> None:
    world = World()
    member_id, first = world.join_twice()
    second = world.join(member_id)
    assert take_response(first).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    world.clock.advance(DELAY_S)
    assert take_response(second).error_code == 0
    assert len(take_response(second).members) == 1


def test_changed_protocols_must_still_fit_the_group() -> None:
    world = World()
    members = world.stable(2)
    assert (
        take_response(world.join(members[0], protocols=(("other", b""),))).error_code
        == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    assert world.state() == "Stable"


# group.max.size


def test_a_full_group_refuses_new_members() -> None:
    world = World(group_max_size=2)
    members = world.stable(2)
    assert take_response(world.join()).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert take_response(world.join(members[1])).error_code == 0


def test_while_members_join_the_place_is_for_those_that_have_joined() -> None:
    world = World(group_max_size=2)
    members = world.stable(2)
    world.join(members[0])
    new, answer = world.join_twice()
    late = take_response(world.join(members[1]))
    assert (late.error_code, late.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    joined = take_response(answer)
    assert joined.generation_id == 2
    assert world.heartbeat(members[1], 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(new, 2) is ErrorCode.NONE


# Bounds


def test_pending_members_are_bounded_and_the_oldest_is_forgotten() -> None:
    world = World(pending_members_max_bytes=10_000)
    ids = [take_response(world.join(group=f"g{number}")).member_id for number in range(100)]
    groups = world.coordinator.list()
    assert isinstance(groups, list)
    assert len(groups) < 10
    assert take_response(world.join(ids[0], group="g0")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert is_waiting(world.join(ids[99], group="g99"))


def test_the_metadata_of_all_members_is_bounded() -> None:
    world = World(member_metadata_max_bytes=100_000)
    large = (("range", b"x" * 45_000),)
    first = world.join(protocols=large, version=3)
    assert is_waiting(first)
    assert is_waiting(world.join(protocols=large, version=3, group="other"))
    refused = take_response(world.join(protocols=large, version=3))
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.wait(DELAY_S + MINUTE_S)  # their generation has started, but no member has sent SyncGroup
    assert world.coordinator.list() == []
    assert is_waiting(world.join(protocols=large, version=3))


def test_members_may_rejoin_when_memory_is_exhausted() -> None:
    world = World(member_metadata_max_bytes=100_000)
    large = (("range", b"x" * 45_000),)
    (member,) = world.stable(1, protocols=large)
    static = world.join(instance="i", protocols=large)
    world.join(member, protocols=large)
    assert not take_response(static).error_code
    larger = take_response(world.join(member, protocols=(("range", b"x" * 60_000),)))
    assert larger.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert is_waiting(world.join(member, protocols=(("range", b"y" * 45_000),)))
    assert not take_response(world.join(instance="i", protocols=large)).error_code


def test_groups_without_a_generation_leave_nothing_behind() -> None:
    world = World()
    for number in range(50):
        world.join(group=f"pending {number}")
        world.join(group=f"joining {number}", version=0)
    world.wait(DELAY_S + MINUTE_S)
    assert world.coordinator.list() == []
    assert world.log.records() == []


def test_a_new_member_that_is_gone_is_not_waited_for_for_ever() -> None:
    world = World()
    members = world.stable(1, session_s=1800, rebalance_s=1200)
    gone = world.join(version=3, session_s=1800, rebalance_s=1200)
    world.clock.advance(5 * MINUTE_S)
    assert take_response(gone).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.state() == "PreparingRebalance"
    again = world.join(members[0], session_s=1800, rebalance_s=1200)
    assert len(take_response(again).members) == 1


def test_a_group_takes_the_protocol_type_of_its_next_first_member() -> None:
    world = World()
    members = world.stable(1)
    world.leave(*members)
    assert world.state() == "Empty"
    world.join_twice(protocol_type="connect", protocols=(("v1", b""),))
    world.clock.advance(DELAY_S)
    assert world.coordinator.describe(GROUP).protocol_type == "connect"
