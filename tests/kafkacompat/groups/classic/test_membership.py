"""SyncGroup, Heartbeat and LeaveGroup."""

from typing import Any

import pytest

from kafkacompat.groups.commits import FetchedOffsets
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import DELAY_S, GROUP, World, is_waiting, take_response

NONE = ErrorCode.NONE

# SyncGroup


def test_members_get_their_assignment_once_it_is_in_the_log() -> None:
    world = World()
    members = world.form(2)
    world.log.hold = True
    follower = world.sync(members[1], 1)
    leader = world.sync(members[0], 1, {members[0]: b"a", members[1]: b"b"})
    assert is_waiting(leader)
    assert is_waiting(follower)
    assert world.state() == "CompletingRebalance"
    world.log.held.pop().succeed()
    answers = [take_response(leader), take_response(follower)]
    assert [(answer.assignment, answer.protocol_type, answer.protocol_name) for answer in answers] == [
        (b"a", "consumer", "range"),
        (b"b", "consumer", "range"),
    ]
    assert world.state() == "Stable"


def test_a_member_the_leader_forgot_gets_an_empty_assignment() -> None:
    world = World()
    members = world.form(2)
    world.sync(members[0], 1, {members[0]: b"a"})
    assert (
        take_response(world.sync(members[1], 1)).error_code,
        take_response(world.sync(members[1], 1)).assignment,
    ) == (0, b"")


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"instance": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "consumer", "protocol_name": "range"}, NONE),
        ({}, NONE),
    ],
)
def test_sync_in_a_stable_group(request_: dict[str, Any], code: ErrorCode) -> None:
    world = World()
    (member_id,) = world.stable()
    answer = take_response(world.sync(**{"member_id": member_id, "generation": 1, **request_}))
    assert answer.error_code == code
    assert answer.assignment == (b"" if code else member_id.encode())


def test_sync_while_members_join_sends_back_to_joining() -> None:
    world = World()
    members = world.stable(2)
    world.join_twice()
    assert take_response(world.sync(members[0], 1)).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_second_sync_of_one_member_answers_the_first() -> None:
    world = World()
    members = world.form(2)
    first = world.sync(members[1], 1)
    second = world.sync(members[1], 1)
    assert take_response(first).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    world.sync(members[0], 1, {members[1]: b"b"})
    assert take_response(second).assignment == b"b"


@pytest.mark.parametrize(
    ("refusal", "reported"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_FETCH_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_an_assignment_that_the_log_refuses_is_none(refusal: ErrorCode, reported: ErrorCode) -> None:
    world = World()
    members = world.form(2)
    follower = world.sync(members[1], 1)
    world.log.refuse_with = refusal
    leader = world.sync(members[0], 1, {})
    assert [take_response(leader).error_code, take_response(follower).error_code] == [reported, reported]
    assert world.state() == "PreparingRebalance"


def test_an_assignment_that_takes_too_long_to_store_is_none() -> None:
    world = World()
    (member_id,) = world.form()
    world.log.hold = True
    answer = world.sync(member_id, 1, {member_id: b"a"})
    world.clock.advance(5)
    assert take_response(answer).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.held.pop().succeed()
    assert world.state() == "PreparingRebalance"


def test_a_stored_assignment_of_an_older_generation_changes_nothing() -> None:
    world = World()
    members = world.form(2)
    world.log.hold = True
    leader = world.sync(members[0], 1, dict.fromkeys(members, b"old"))
    world.leave(members[1])
    assert take_response(leader).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    answer = world.join(members[0])
    assert take_response(answer).generation_id == 2
    world.log.held.pop(0).succeed()
    assert world.state() == "CompletingRebalance"
    assert world.coordinator.describe(GROUP).members[0].member_assignment == b""


# Heartbeat


@pytest.mark.parametrize(
    ("story", "code"),
    [("form", NONE), ("stable", NONE), ("rebalance", ErrorCode.REBALANCE_IN_PROGRESS)],
)
def test_heartbeats_by_state(story: str, code: ErrorCode) -> None:
    world = World()
    members = world.form() if story == "form" else world.stable()
    if story == "rebalance":
        world.join_twice()
    assert world.heartbeat(members[0], 1) is code


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"instance": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_heartbeats_of_strangers(request_: dict[str, Any], code: ErrorCode) -> None:
    world = World()
    (member_id,) = world.stable()
    assert world.heartbeat(**{"member_id": member_id, "generation": 1, **request_}) is code


def test_a_heartbeat_to_an_empty_group() -> None:
    world = World()
    world.leave(*world.stable())
    assert world.heartbeat("x", 2) is ErrorCode.UNKNOWN_MEMBER_ID


# LeaveGroup


def test_leaving_starts_a_rebalance_of_the_others() -> None:
    world = World()
    members = world.stable(3)
    assert world.leave(members[2]) == [NONE]
    assert world.heartbeat(members[0], 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_several_leave_at_once_each_with_its_own_outcome() -> None:
    world = World()
    members = world.stable(3)
    codes = world.leave(members[1], "x", members[2])
    assert codes == [NONE, ErrorCode.UNKNOWN_MEMBER_ID, NONE]
    assert len(take_response(world.join(members[0])).members) == 1


def test_leaving_in_vain_changes_nothing() -> None:
    world = World()
    world.stable()
    assert world.leave("x") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert world.state() == "Stable"


@pytest.mark.parametrize(
    ("group", "codes"),
    [("", ErrorCode.INVALID_GROUP_ID), ("x", [ErrorCode.UNKNOWN_MEMBER_ID])],
)
def test_leaving_no_group(group: str, codes: object) -> None:
    assert World().leave("m", group=group) == codes


def test_a_member_that_leaves_while_it_waits_is_answered() -> None:
    world = World()
    members = world.stable(2)
    joining = world.join(members[0])
    world.leave(members[0])
    assert take_response(joining).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    world = World()
    members = world.form(2)
    syncing = world.sync(members[1], 1)
    world.leave(members[1])
    assert take_response(syncing).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_is_removed_by_its_instance_id() -> None:
    world = World()
    answer = world.join(instance="i")
    world.clock.advance(DELAY_S)
    member_id = take_response(answer).member_id
    coordinator = world.coordinator
    assert coordinator.leave(GROUP, [MemberIdentity(group_instance_id="other")]) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert coordinator.leave(GROUP, [MemberIdentity(member_id="x", group_instance_id="i")]) == [
        ErrorCode.FENCED_INSTANCE_ID
    ]
    assert coordinator.leave(GROUP, [MemberIdentity(group_instance_id="i")]) == [NONE]
    assert world.heartbeat(member_id, 1, instance="i") is ErrorCode.UNKNOWN_MEMBER_ID


# Other coordinators


def test_a_partition_that_goes_to_another_broker_takes_its_groups_along() -> None:
    world = World()
    members = world.stable(2)
    joining = world.join(members[0])
    partition = world.coordinator.partition_for(GROUP)
    world.coordinator.on_resignation(partition)
    assert take_response(joining).error_code == ErrorCode.NOT_COORDINATOR
    assert world.heartbeat(members[1], 1) is ErrorCode.NOT_COORDINATOR
    assert take_response(world.join()).error_code == ErrorCode.NOT_COORDINATOR
    assert take_response(world.sync(members[0], 1)).error_code == ErrorCode.NOT_COORDINATOR
    assert world.leave(members[0]) is ErrorCode.NOT_COORDINATOR
    assert take_response(world.commit()) == [ErrorCode.NOT_COORDINATOR]
    fetched: FetchedOffsets = take_response(world.coordinator.fetch_offsets(GROUP))
    assert fetched.error_code is ErrorCode.NOT_COORDINATOR
    assert world.coordinator.describe(GROUP).error_code == ErrorCode.NOT_COORDINATOR
    assert take_response(world.coordinator.delete(GROUP)) is ErrorCode.NOT_COORDINATOR
    assert world.coordinator.list() == []
    world.coordinator.on_election(partition)
    world.turn(3)
    assert world.heartbeat(members[1], 1) is NONE


def test_a_stopped_coordinator_answers_waiting_requests_and_leaves_no_timers() -> None:
    world = World()
    members = world.stable(2)
    joining = world.join(members[0])
    world.coordinator.stop()
    assert take_response(joining).error_code == ErrorCode.NOT_COORDINATOR
    assert world.heartbeat(members[1], 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.coordinator.list() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.clock.getDelayedCalls() == []
