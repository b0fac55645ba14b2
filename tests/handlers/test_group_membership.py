"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup in every version."""

from typing import Any

import pytest

from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kafkacompat.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.group_node import GroupNode
from tests.kafkacompat.groups.support import DELAY_S


def join_request(member_id: str = "", **fields: Any) -> JoinGroupRequest:
    options = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"meta")],
    }
    return JoinGroupRequest(**{**options, **fields})


def join_member(node: GroupNode, version: int = 9) -> JoinGroupResponse:
    """One member, of generation 1."""
    member_id = ""
    if version >= 4:
        member_id = node.ask(join_request(), JoinGroupResponse, version).member_id
    waiting = node.send(join_request(member_id), version)
    node.world.clock.advance(DELAY_S)
    return node.read(waiting, JoinGroupResponse, version)


def sync_request(member_id: str, **fields: Any) -> SyncGroupRequest:
    assignments = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine")]
    options = {"group_id": "g", "generation_id": 1, "member_id": member_id, "assignments": assignments}
    return SyncGroupRequest(**{**options, "protocol_type": "consumer", "protocol_name": "range", **fields})


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins(version: int) -> None:
    node = GroupNode()
    answer = join_member(node, version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.protocol_type == ("consumer" if version >= 7 else None)
    assert answer.member_id.startswith("cli-")
    assert answer.leader == answer.member_id
    assert [(member.member_id, member.metadata) for member in answer.members] == [(answer.member_id, b"meta")]


@pytest.mark.parametrize(("version", "code"), [(3, 0), (4, ErrorCode.MEMBER_ID_REQUIRED), (9, 79)])
def test_from_version_4_on_an_id_is_required(version: int, code: int) -> None:
    node = GroupNode()
    waiting = node.send(join_request(), version)
    node.world.clock.advance(DELAY_S)
    answer = node.read(waiting, JoinGroupResponse, version)
    assert (answer.error_code, answer.generation_id) == (code, -1 if code else 1)
    assert answer.member_id.startswith("cli-")


@pytest.mark.parametrize(("version", "nothing"), [(0, ""), (6, ""), (7, None), (9, None)])
def test_a_refused_join_names_no_protocol(version: int, nothing: str | None) -> None:
    answer = GroupNode().ask(join_request("unknown"), JoinGroupResponse, version)
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "unknown")
    assert (answer.protocol_name, answer.protocol_type, answer.leader, answer.members) == (nothing, None, "", [])


def test_in_version_0_the_session_timeout_counts_for_rebalancing() -> None:
    node = GroupNode()
    join_member(node, 0)
    node.world.wait(10)
    assert node.world.state() == "Dead", "10 s without SyncGroup, as long as the session timeout"


def test_the_address_of_a_member_is_written_as_kafka_writes_it() -> None:
    node = GroupNode()
    join_member(node)
    (member,) = node.world.coordinator.describe("g").members
    assert (member.client_id, member.client_host) == ("cli", "/10.1.1.1")


@pytest.mark.parametrize("version", [5, 9])
def test_a_static_member_joins_with_its_instance_id(version: int) -> None:
    node = GroupNode()
    waiting = node.send(join_request(group_instance_id="i"), version)
    node.world.clock.advance(DELAY_S)
    answer = node.read(waiting, JoinGroupResponse, version)
    assert answer.member_id.startswith("i-")
    assert answer.members[0].group_instance_id == "i"
    synced = node.ask(sync_request(answer.member_id, group_instance_id="i"), SyncGroupResponse, 5)
    assert synced.error_code == 0
    again = node.ask(join_request(group_instance_id="i"), JoinGroupResponse, version)
    assert (again.error_code, again.generation_id, again.skip_assignment) == (0, 1, version >= 9)


@pytest.mark.parametrize("version", range(6))
def test_a_member_gets_its_assignment(version: int) -> None:
    node = GroupNode()
    member_id = join_member(node).member_id
    answer = node.ask(sync_request(member_id), SyncGroupResponse, version)
    assert (answer.error_code, answer.assignment) == (0, b"mine")
    names = ("consumer", "range") if version >= 5 else (None, None)
    assert (answer.protocol_type, answer.protocol_name) == names


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_from_version_5_on_a_sync_names_the_protocol(missing: str) -> None:
    node = GroupNode()
    member_id = join_member(node).member_id
    request = sync_request(member_id, **{missing: None})
    refused = node.ask(request, SyncGroupResponse, 5)
    assert (refused.error_code, refused.assignment) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, b"")
    assert node.ask(request, SyncGroupResponse, 4).error_code == 0


def test_a_follower_waits_for_the_leader() -> None:
    node = GroupNode()
    first, second = (node.ask(join_request(), JoinGroupResponse, 9).member_id for _ in range(2))
    waiting = [node.send(join_request(member_id), 9) for member_id in (first, second)]
    node.world.wait(2 * int(DELAY_S))
    answers = [node.read(pending, JoinGroupResponse, 9) for pending in waiting]
    leader = answers[0].leader
    follower = second if leader == first else first
    syncing = node.send(sync_request(follower, assignments=[]), 5)
    assert not getattr(syncing, "called", True)
    assignments = [SyncGroupRequestAssignment(member_id=follower, assignment=b"yours")]
    node.ask(sync_request(leader, assignments=assignments), SyncGroupResponse, 5)
    assert node.read(syncing, SyncGroupResponse, 5).assignment == b"yours"


@pytest.mark.parametrize("version", range(5))
def test_heartbeats(version: int) -> None:
    node = GroupNode()
    member_id = join_member(node).member_id
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    assert node.ask(request, HeartbeatResponse, version).error_code == 0
    request.generation_id = 2
    assert node.ask(request, HeartbeatResponse, version).error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("is_known", [True, False])
def test_leaving(version: int, is_known: bool) -> None:
    node = GroupNode()
    member_id = join_member(node).member_id if is_known else "unknown"
    code = 0 if is_known else ErrorCode.UNKNOWN_MEMBER_ID
    if version < 3:
        request = LeaveGroupRequest(group_id="g", member_id=member_id)
        assert node.ask(request, LeaveGroupResponse, version) == LeaveGroupResponse(error_code=code)
        return
    request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)])
    answer = node.ask(request, LeaveGroupResponse, version)
    assert answer.error_code == 0
    assert [(member.member_id, member.group_instance_id, member.error_code) for member in answer.members] == [
        (member_id, None, code)
    ]


@pytest.mark.parametrize("version", [2, 3])
def test_leaving_a_group_without_a_name(version: int) -> None:
    answer = GroupNode().ask(LeaveGroupRequest(member_id="m"), LeaveGroupResponse, version)
    assert (answer.error_code, answer.members) == (ErrorCode.INVALID_GROUP_ID if version < 3 else 24, [])
