"""The handlers that members and administrators of consumer groups meet, through the wire."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.handlers.authorized_operations import GROUP_OPERATIONS
from kafkacompat.wire.apis.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kafkacompat.wire.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kafkacompat.wire.apis.list_groups import ListGroupsRequest
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import MIN_INT32
from tests.handlers.group_node import TOPIC_IDS, GroupNode
from tests.kafkacompat.groups.support import is_waiting, write_topics


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


def send_heartbeat(
    node: GroupNode, member_id: str, epoch: int, version: int = 1, **more: Any
) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch)
    for field, value in more.items():
        setattr(request, field, value)
    return node.ask(request, ConsumerGroupHeartbeatResponse, version)


def send_first_heartbeat(node: GroupNode, member_id: str = "m", version: int = 1) -> ConsumerGroupHeartbeatResponse:
    return send_heartbeat(
        node, member_id, 0, version, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )


def describe(node: GroupNode, *names: str, version: int = 1, allowed: bool = False) -> list[DescribedGroup]:
    request = ConsumerGroupDescribeRequest(group_ids=list(names), include_authorized_operations=allowed)
    return node.ask(request, ConsumerGroupDescribeResponse, version).groups


def test_the_first_heartbeat_returns_the_assignment(node: GroupNode) -> None:
    answer = send_first_heartbeat(node)
    assert (answer.error_code, answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (0, "m", 2, 5000)
    assert answer.assignment is not None
    (part,) = answer.assignment.topic_partitions
    assert (part.topic_id, part.partitions) == (TOPIC_IDS["t"], [0, 1])
    assert send_heartbeat(node, "m", 2).assignment is None


def test_only_the_first_version_gives_ids(node: GroupNode) -> None:
    assert send_first_heartbeat(node, "", version=1).error_code == ErrorCode.INVALID_REQUEST
    assert len(send_first_heartbeat(node, "", version=0).member_id or "") == 22


def test_an_answer_waits_for_the_log(node: GroupNode) -> None:
    node.world.log.hold = True
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert is_waiting(node.send(request, 1))


def test_groups_are_described(node: GroupNode) -> None:
    send_first_heartbeat(node)
    (group,) = describe(node, "g")
    description = (group.group_id, group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name)
    assert description == ("g", "Stable", 2, 2, "uniform")
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.client_id, member.client_host) == ("m", 2, "cli", "/10.1.1.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex, member.member_type) == (["t"], "", 1)
    for assignment in (member.assignment, member.target_assignment):
        (part,) = assignment.topic_partitions
        assert (part.topic_id, part.topic_name, part.partitions) == (TOPIC_IDS["t"], "t", [0, 1])
    assert describe(node, "g", version=0)[0].members[0].member_type == -1


def test_describe_returns_operations_on_request(node: GroupNode) -> None:
    send_first_heartbeat(node)
    assert describe(node, "g")[0].authorized_operations == MIN_INT32
    known, unknown = describe(node, "g", "absent", "g", allowed=True)
    assert (known.authorized_operations, unknown.authorized_operations) == (GROUP_OPERATIONS, MIN_INT32)
    assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_classic_groups_are_no_consumer_groups_and_the_other_way_round(node: GroupNode) -> None:
    node.world.commit(group="simple")
    send_first_heartbeat(node)
    assert describe(node, "simple", "")[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert describe(node, "")[0].error_code == ErrorCode.INVALID_GROUP_ID
    for version, code in ((5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)):
        asked = node.ask(DescribeGroupsRequest(groups=["g"]), DescribeGroupsResponse, version).groups[0]
        assert (asked.error_code, asked.group_state) == (code, "Dead")


def test_groups_are_listed_with_their_type(node: GroupNode) -> None:
    node.world.commit(group="simple")
    send_first_heartbeat(node)
    for types, names in ((["consumer"], ["g"]), (["classic"], ["simple"]), ([], ["g", "simple"])):
        groups = node.world.coordinator.list(types=ListGroupsRequest(types_filter=types).types_filter)
        assert not isinstance(groups, ErrorCode)
        assert sorted(group.group_id for group in groups) == names


@pytest.mark.parametrize(
    ("version", "epoch", "code"),
    [
        (8, 2, ErrorCode.UNSUPPORTED_VERSION),
        (9, 2, ErrorCode.NONE),
        (9, 1, ErrorCode.STALE_MEMBER_EPOCH),
        (10, 2, ErrorCode.NONE),
    ],
)
def test_commits_name_an_epoch(node: GroupNode, version: int, epoch: int, code: ErrorCode) -> None:
    send_first_heartbeat(node)
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topic = OffsetCommitRequestTopic(name="t", topic_id=TOPIC_IDS["t"], partitions=[part])
    request = OffsetCommitRequest(group_id="g", member_id="m", generation_id_or_member_epoch=epoch, topics=[topic])
    answer = node.ask(request, OffsetCommitResponse, version)
    assert answer.topics[0].partitions[0].error_code == code


@pytest.mark.parametrize(("epoch", "code"), [(2, ErrorCode.NONE), (1, ErrorCode.STALE_MEMBER_EPOCH)])
def test_offsets_are_read_with_an_epoch(node: GroupNode, epoch: int, code: ErrorCode) -> None:
    send_first_heartbeat(node)
    wanted = OffsetFetchRequestGroup(group_id="g", member_id="m", member_epoch=epoch, topics=None)
    answer = node.ask(OffsetFetchRequest(groups=[wanted]), OffsetFetchResponse, 9)
    assert answer.groups[0].error_code == code


def test_members_of_the_classic_protocol_come_and_go(node: GroupNode) -> None:
    send_first_heartbeat(node)
    protocol = JoinGroupRequestProtocol(name="range", metadata=write_topics("t"))
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=1000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    joined = node.ask(join, JoinGroupResponse, 3)
    assert joined.error_code == 0
    request = LeaveGroupRequest(
        group_id="g", members=[MemberIdentity(member_id=joined.member_id), MemberIdentity(member_id="x")]
    )
    node.world.log.hold = True
    leaving = node.send(request, 5)
    assert is_waiting(leaving)
    node.world.log.held.pop().succeed()
    codes = [member.error_code for member in node.read(leaving, LeaveGroupResponse, 5).members]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
