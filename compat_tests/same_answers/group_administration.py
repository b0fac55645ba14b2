"""Scripts about administrators' requests about groups: lists by state and type, descriptions, deleting offsets and groups."""

from __future__ import annotations

from compat_tests.same_answers.groups import (
    a_stable_member,
    ask_offsets,
    make_commit_request,
    make_join_request,
    make_sync_request,
    wait_for_coordinator,
)
from compat_tests.same_answers.transcript import Transcript
from kafkacompat.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.apis.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kafkacompat.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkacompat.wire.apis.offset_commit import OffsetCommitResponse
from kafkacompat.wire.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kafkacompat.wire.apis.sync_group import SyncGroupResponse


def lists(script: Transcript, name: str) -> None:
    """Each list depends on the filter, so the groups of other scripts are left out by name."""
    script.create_topic(name)
    wait_for_coordinator(script, name)
    script.ask("commit", make_commit_request(name, name, 1), OffsetCommitResponse, 9)
    a_stable_member(script, name + "-stable")

    def ask(label: str, version: int = 5, **filters: list[str]) -> None:
        probe = Transcript(script.port)
        answer = probe.ask(label, ListGroupsRequest(**filters), ListGroupsResponse, version)
        probe.close()
        if answer is not None:
            groups = sorted(
                (group for group in answer.groups if name in group.group_id), key=lambda group: group.group_id
            )
            script.note(f"{label} v{version}", [answer.error_code, *groups])

    for version in range(6):
        ask("all", version)
    for states in (
        ["Empty"],
        ["empty"],
        ["STABLE"],
        ["Dead"],
        ["Frobnicated"],
        ["Stable", "Frobnicated"],
        [""],
        [" Empty "],
    ):
        ask(f"in {states}", 4, states_filter=states)
        ask(f"in {states}", 5, states_filter=states)
    for types in (
        ["classic"],
        ["Classic"],
        ["consumer"],
        ["share"],
        ["streams"],
        ["frobnicated"],
        ["consumer", "classic"],
        ["frobnicated", "classic"],
        [""],
        [" classic "],
        ["unknown"],
    ):
        ask(f"of {types}", types_filter=types)
    ask("both", states_filter=["Empty"], types_filter=["classic"])


def descriptions(script: Transcript, name: str) -> None:
    script.create_topic(name)
    wait_for_coordinator(script, name)
    a_stable_member(script, name + "-stable")
    script.ask("commit", make_commit_request(name, name, 1), OffsetCommitResponse, 9)
    for label, groups in {
        "empty and stable": [name, name + "-stable"],
        "twice": [name, name],
        "unknown and known": [name + "-absent", name],
        "none": [],
    }.items():
        for allowed in (False, True):
            request = DescribeGroupsRequest(groups=groups, include_authorized_operations=allowed)
            for version in (0, 2, 4, 6):
                script.ask(f"{label}, operations {allowed}", request, DescribeGroupsResponse, version)
    for label, groups in {"twice": [name, name], "with used": [name + "-stable", name], "none": []}.items():
        script.ask(f"delete {label}", DeleteGroupsRequest(groups_names=groups), DeleteGroupsResponse, 2)


def a_subscriber(script: Transcript, group: str, topic: str, protocol_type: str = "consumer") -> None:
    """Let one member join that subscribes to a topic."""
    named = topic.encode()
    subscription = b"\x00\x00\x00\x00\x00\x01" + len(named).to_bytes(2, "big") + named + b"\xff\xff\xff\xff"
    protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription)]
    joining = make_join_request(group, protocols=protocols, protocol_type=protocol_type)
    joined = script.ask(f"join {group}", joining, JoinGroupResponse, 3)
    assert joined is not None
    syncing = make_sync_request(group, joined.generation_id, joined.member_id)
    script.ask(f"sync {group}", syncing, SyncGroupResponse, 3)


def deleted_offsets(script: Transcript, name: str) -> None:
    other = name + "-other"
    script.create_topic(name, 2)
    script.create_topic(other)
    wait_for_coordinator(script, name)

    def delete(label: str, group: str, *wanted: tuple[str, list[int]]) -> None:
        topics = [
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
            )
            for topic, partitions in wanted
        ]
        script.ask(label, OffsetDeleteRequest(group_id=group, topics=topics), OffsetDeleteResponse, 0)

    delete("no group", "", (name, [0]))
    delete("unknown group", name + "-absent", (name, [0]))
    delete("unknown group and topic", name + "-absent", (name + "-absent", [0]))
    delete("unknown group and nothing", name + "-absent")
    script.ask("commit", make_commit_request(name, name, 1), OffsetCommitResponse, 9)
    delete("of an empty group", name, (name, [7, 0, 1]), (name + "-absent", [0]))
    ask_offsets(script, "after", name, name, bytes(16), 7)
    script.ask("commit again", make_commit_request(name, name, 1), OffsetCommitResponse, 9)
    delete("twice", name, (name, [0, 0]))
    delete("topic twice", name, (name, [0]), (name, [1]))
    delete("nothing", name)
    delete("no partition", name, (name, []))
    delete("negative", name, (name, [-1]))
    delete("bad name", name, ("no/slashes", [0]))

    live = name + "-live"
    script.ask("commit live", make_commit_request(live, other, 3), OffsetCommitResponse, 9)
    a_subscriber(script, live, name)
    delete("subscribed", live, (name, [0]), (other, [0]))
    ask_offsets(script, "after of the other", live, other, bytes(16), 7)
    connect = name + "-connect"
    a_subscriber(script, connect, name, "connect")
    delete("of a live group that does not consume", connect, (name, [0]))
    script.ask("bare join", make_join_request(name + "-bare", protocol_type="consumer"), JoinGroupResponse, 3)
    delete("while it rebalances", name + "-bare", (name, [0]))


def odd_subscriptions(script: Transcript, name: str) -> None:
    """The topics of a group whose subscriptions are valid only at their beginning."""
    script.create_topic(name)
    wait_for_coordinator(script, name)
    topic = len(name).to_bytes(2, "big") + name.encode()
    body = b"\x00\x00\x00\x01" + topic + b"\xff\xff\xff\xff"
    wanted = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=name, partitions=wanted)]
    for label, subscription in {
        "to nothing": bytes(2) + b"\x00\x00\x00\x00" + b"\xff\xff\xff\xff",
        "as it should be": bytes(2) + body,
        "of a later version": b"\x00\x09" + body + b"more",
        "of version 1 without its field": b"\x00\x01" + body,
        "of version 3 with other fields": b"\x00\x03" + body + b"\x7f\xff\xff\xff",
        "to nothing, of version 3 without its fields": b"\x00\x03" + bytes(4) + b"\xff\xff\xff\xff",
        "of a negative version": b"\xff\xfe" + body,
        "without anything": b"",
        "without a whole version": b"\x00",
        "cut off in the length of a name": bytes(2) + body[:5],
    }.items():
        group = f"{name} {label}"
        protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription)]
        script.ask(f"join {label}", make_join_request(group, protocols=protocols), JoinGroupResponse, 3)
        script.ask(label, OffsetDeleteRequest(group_id=group, topics=topics), OffsetDeleteResponse, 0)


def groups_without_a_name(script: Transcript, name: str) -> None:
    """Only offsets may be of a group without a name."""
    topic_id = script.create_topic(name)
    wait_for_coordinator(script, name)
    member = MemberIdentity(member_id="m")
    for version in range(5):
        script.ask("heartbeat", HeartbeatRequest(group_id="", member_id="m"), HeartbeatResponse, version)
        script.ask("leave", LeaveGroupRequest(member_id="m", members=[member]), LeaveGroupResponse, version)
    for version in range(6):
        script.ask("sync", make_sync_request("", 1, "m"), SyncGroupResponse, version)
    script.ask("commit", make_commit_request("", name, 1, topic_id), OffsetCommitResponse, 10)
    as_a_member = make_commit_request("", name, 1, topic_id, member_id="m", generation_id_or_member_epoch=1)
    script.ask("commit as a member", as_a_member, OffsetCommitResponse, 10)
    ask_offsets(script, "offsets", "", name, topic_id, 10)
    script.ask_every_version("describe", DescribeGroupsRequest(groups=[""]), DescribeGroupsResponse)
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=name, partitions=partitions)]
    script.ask("delete offsets", OffsetDeleteRequest(group_id="", topics=topics), OffsetDeleteResponse, 0)
    script.ask("delete", DeleteGroupsRequest(groups_names=[""]), DeleteGroupsResponse, 2)
    script.ask("delete again", DeleteGroupsRequest(groups_names=[""]), DeleteGroupsResponse, 2)


SCRIPTS = (lists, descriptions, deleted_offsets, odd_subscriptions, groups_without_a_name)
