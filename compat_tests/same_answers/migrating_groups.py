"""Scripts about groups in which members of both protocols meet, and that turn from one into the other (KIP-848)."""

from __future__ import annotations

from typing import Any

from compat_tests.same_answers.consumer_groups import Group, make_heartbeat, make_joining_heartbeat
from compat_tests.same_answers.groups import ask_offsets, make_commit_request, make_join_request, make_sync_request
from compat_tests.same_answers.transcript import Transcript
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kafkacompat.wire.apis.offset_commit import OffsetCommitResponse
from kafkacompat.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    write_assignment,
    write_subscription,
)


def write_topics(topic: str, **given: list[int]) -> bytes:
    parts = [TopicPartition(topic=topic, partitions=some) for some in given.values()]
    return write_subscription(ConsumerProtocolSubscription(topics=[topic], owned_partitions=parts), 1)


def classic_join(group: str, topic: str, member_id: str = "", **more: Any) -> JoinGroupRequest:
    held = more.pop("held", None)
    metadata = write_topics(topic, held=held) if held else write_topics(topic)
    more.setdefault("protocols", [JoinGroupRequestProtocol(name="range", metadata=metadata)])
    return make_join_request(group, member_id, **more)


def classic_sync(group: str, member_id: str, generation: int, **more: Any) -> SyncGroupRequest:
    more.setdefault("assignments", [])
    return make_sync_request(group, generation, member_id, **more)


def note_sync(script: Transcript, label: str, request: SyncGroupRequest) -> list[int]:
    """Ask for an assignment and note the number of its partitions; return them."""
    answer = script.client.call(request, SyncGroupResponse, 5)
    partitions = [
        number
        for part in (read_assignment(answer.assignment).assigned_partitions if answer.assignment else [])
        for number in part.partitions
    ]
    script.note(label, [answer.error_code, answer.protocol_type, answer.protocol_name, len(partitions)])
    return partitions


def classic_members(script: Transcript, name: str) -> None:
    """A member of the classic protocol in a consumer group."""
    group = Group(script, name)
    group.topic(name, 4)
    first = group.ask("first joins", make_joining_heartbeat(name, "a", name))
    script.ask("of another type", classic_join(name, name, protocol_type="connect"), JoinGroupResponse, 9)
    script.ask("no protocols", classic_join(name, name, protocols=[]), JoinGroupResponse, 9)
    script.ask("short session", classic_join(name, name, session_timeout_ms=1), JoinGroupResponse, 9)
    static = classic_join(name, name, "x", group_instance_id="i")
    script.ask("unknown static", static, JoinGroupResponse, 9)
    wanted = script.ask("wants an id", classic_join(name, name), JoinGroupResponse, 9)
    assert wanted is not None
    member = wanted.member_id
    joined = script.ask("joins with it", classic_join(name, name, member), JoinGroupResponse, 9)
    assert joined is not None
    generation = joined.generation_id

    def heartbeat(label: str, number: int, member_id: str = member) -> None:
        request = HeartbeatRequest(group_id=name, generation_id=number, member_id=member_id)
        script.ask(label, request, HeartbeatResponse, 4)

    note_sync(script, "sync", classic_sync(name, member, generation))
    note_sync(script, "sync of another type", classic_sync(name, member, generation, protocol_type="connect"))
    note_sync(script, "sync of another protocol", classic_sync(name, member, generation, protocol_name="sticky"))
    note_sync(script, "sync too late", classic_sync(name, member, generation - 1))
    note_sync(script, "sync of the other", classic_sync(name, "a", 2))
    heartbeat("waits", generation)
    heartbeat("too late", generation - 1)
    heartbeat("the other", 2, "a")
    heartbeat("nobody", 2, "n")
    group.describe("waits")
    less = group.ask("first learns", make_heartbeat(name, "a", 2, topic_partitions=group.has(first)))
    group.ask("first has given up", make_heartbeat(name, "a", 2, topic_partitions=group.has(less)))
    heartbeat("is to join", generation)
    again = script.ask("joins again", classic_join(name, name, member), JoinGroupResponse, 9)
    assert again is not None
    assigned = note_sync(script, "gets it", classic_sync(name, member, again.generation_id))
    heartbeat("settled", again.generation_id)
    request = make_commit_request(name, name, 1, member_id=member, generation_id_or_member_epoch=again.generation_id)
    script.ask("commits", request, OffsetCommitResponse, 7)
    request = make_commit_request(
        name, name, 1, member_id=member, generation_id_or_member_epoch=again.generation_id + 1
    )
    script.ask("commits too early", request, OffsetCommitResponse, 7)
    group.ask("third joins", make_joining_heartbeat(name, "b", name))
    heartbeat("third is there", again.generation_id)
    script.ask("is to give up", classic_join(name, name, member, held=assigned), JoinGroupResponse, 9)
    heartbeat("unrevoked", again.generation_id)
    left = note_sync(script, "what is left", classic_sync(name, member, again.generation_id))
    heartbeat("unrevoked still", again.generation_id)
    script.ask("has given up", classic_join(name, name, member, held=left), JoinGroupResponse, 9)
    group.describe("three")
    leave = [MemberIdentity(member_id=member), MemberIdentity(member_id="n"), MemberIdentity(group_instance_id="i")]
    script.ask("leaves", LeaveGroupRequest(group_id=name, members=leave), LeaveGroupResponse, 5)
    group.describe("two")


def classic_group_turns(script: Transcript, name: str) -> None:
    """A classic group accepts a member of the new protocol, and is classic again after that member has left."""
    group = Group(script, name)
    group.topic(name, 2)
    joined = script.ask("joins", classic_join(name, name), JoinGroupResponse, 3)
    assert joined is not None
    member = joined.member_id
    parts = [TopicPartition(topic=name, partitions=[0, 1])]
    given = write_assignment(ConsumerProtocolAssignment(assigned_partitions=parts), 1)
    assignments = [SyncGroupRequestAssignment(member_id=member, assignment=given)]
    note_sync(script, "sync", classic_sync(name, member, joined.generation_id, assignments=assignments))
    script.ask(
        "commit",
        make_commit_request(name, name, 1, member_id=member, generation_id_or_member_epoch=joined.generation_id),
        OffsetCommitResponse,
        7,
    )
    group.ask("new one joins", make_joining_heartbeat(name, "new", name))
    group.describe("consumer")
    script.ask("as classic", DescribeGroupsRequest(groups=[name]), DescribeGroupsResponse, 6)
    beating = HeartbeatRequest(group_id=name, generation_id=joined.generation_id, member_id=member)
    script.ask("is to join", beating, HeartbeatResponse, 4)
    again = script.ask("joins again", classic_join(name, name, member, held=[0, 1]), JoinGroupResponse, 9)
    assert again is not None
    left = note_sync(script, "what is left", classic_sync(name, member, again.generation_id))
    again = script.ask("has given up", classic_join(name, name, member, held=left), JoinGroupResponse, 9)
    assert again is not None
    note_sync(script, "goes on", classic_sync(name, member, again.generation_id))
    group.ask("new one gets it", make_heartbeat(name, "new", 2))
    ask_offsets(script, "offsets", name, name, bytes(16), 7)
    group.ask("new one leaves", make_heartbeat(name, "new", -1))
    description = script.client.call(DescribeGroupsRequest(groups=[name]), DescribeGroupsResponse, 6).groups[0]
    script.note(
        "classic again",
        [description.error_code, description.group_state, description.protocol_type, len(description.members)],
    )
    beating = HeartbeatRequest(group_id=name, generation_id=again.generation_id, member_id=member)
    script.ask("is to join the classic group", beating, HeartbeatResponse, 4)
    script.ask("joins the classic group", classic_join(name, name, member), JoinGroupResponse, 5)
    ask_offsets(script, "offsets at last", name, name, bytes(16), 7)


def groups_that_do_not_turn(script: Transcript, name: str) -> None:
    group = Group(script, name)
    group.topic(name, 1)
    connect = classic_join(name + "-connect", name, protocol_type="connect")
    script.ask("connect", connect, JoinGroupResponse, 3)
    group.ask("joins connect", make_joining_heartbeat(name + "-connect", "m", name))
    joined = script.ask("empty: join", classic_join(name + "-empty", name), JoinGroupResponse, 3)
    assert joined is not None
    gone = LeaveGroupRequest(group_id=name + "-empty", members=[MemberIdentity(member_id=joined.member_id)])
    script.ask("empty: leave", gone, LeaveGroupResponse, 5)
    group.ask("empty: joins", make_joining_heartbeat(name + "-empty", "m", name))
    group.ask("empty: leaves", make_heartbeat(name + "-empty", "m", -1))
    script.ask("empty: classic again", classic_join(name + "-empty", name), JoinGroupResponse, 3)
    script.ask("simple: commit", make_commit_request(name + "-simple", name, 3), OffsetCommitResponse, 9)
    group.ask("simple: joins", make_joining_heartbeat(name + "-simple", "m", name))
    ask_offsets(script, "simple", name + "-simple", name, bytes(16), 7)


def a_static_member_turns(script: Transcript, name: str) -> None:
    """The only member, static, comes back with the other protocol, and again."""
    group = Group(script, name)
    group.topic(name, 2)
    here = {"instance_id": "here"}
    group.ask("joins", make_joining_heartbeat(name, "a", name, **here))
    group.ask("goes", make_heartbeat(name, "a", -2, **here))
    back = classic_join(name, name, group_instance_id="here")
    joined = script.ask("comes back as classic", back, JoinGroupResponse, 9)
    assert joined is not None
    member = joined.member_id
    synced = classic_sync(name, member, joined.generation_id, group_instance_id="here")
    note_sync(script, "has it all", synced)
    script.ask("is classic", DescribeGroupsRequest(groups=[name + "-x"]), DescribeGroupsResponse, 6)
    group.ask("comes back as consumer", make_joining_heartbeat(name, "b", name, **here))
    group.describe("is consumer")
    old = HeartbeatRequest(
        group_id=name, generation_id=joined.generation_id, member_id=member, group_instance_id="here"
    )
    script.ask("old one is fenced", old, HeartbeatResponse, 4)


SCRIPTS = (
    classic_members,
    classic_group_turns,
    groups_that_do_not_turn,
    a_static_member_turns,
)
