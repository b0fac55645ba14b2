"""Scripts about consumer groups: membership, offsets, and requests of administrators."""

from __future__ import annotations

from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kafkacompat.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkacompat.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafkacompat.wire.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kafkacompat.wire.errors import ErrorCode

NOT_READY = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"


def wait_for_coordinator(script: Transcript, group: str) -> None:
    """Ask for a group until the broker has created and loaded its offsets topic, without a note."""
    probe = Transcript(script.port)
    tries = iter(range(1_000_000))

    def is_ready() -> bool:
        number = next(tries)
        coordinator = probe.ask(f"find {number}", FindCoordinatorRequest(key=group), FindCoordinatorResponse, 0)
        wanted = OffsetFetchRequest(group_id=group, topics=None)
        offsets = probe.ask(f"offsets {number}", wanted, OffsetFetchResponse, 7)
        return bool(coordinator and not coordinator.error_code and offsets and offsets.error_code not in NOT_READY)

    until(is_ready)
    probe.close()


def make_join_request(group: str, member_id: str = "", protocol: str = "range", **more: object) -> JoinGroupRequest:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=protocol, metadata=SUBSCRIPTION)],
    )
    for field, value in more.items():
        setattr(request, field, value)
    return request


def make_sync_request(group: str, generation: int, member_id: str, **more: object) -> SyncGroupRequest:
    given = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine")]
    request = SyncGroupRequest(
        group_id=group, generation_id=generation, member_id=member_id, assignments=given,
        protocol_type="consumer", protocol_name="range",
    )  # fmt: skip
    for field, value in more.items():
        setattr(request, field, value)
    return request


def life_of_a_member(script: Transcript, group: str, version: int) -> None:
    """Join, sync, heartbeat and leave in the versions that belong together."""
    label = f"join {version}:"
    joined = script.ask(f"{label} first", make_join_request(group), JoinGroupResponse, version)
    assert joined is not None
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        joined = script.ask(f"{label} with id", make_join_request(group, joined.member_id), JoinGroupResponse, version)
        assert joined is not None
    member, generation, small = joined.member_id, joined.generation_id, min(version, 4)
    beat = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
    script.ask(f"{label} heartbeat before sync", beat, HeartbeatResponse, small)
    script.ask(f"{label} sync", make_sync_request(group, generation, member), SyncGroupResponse, min(version, 5))
    script.ask(f"{label} sync again", make_sync_request(group, generation, member), SyncGroupResponse, min(version, 5))
    script.ask(f"{label} heartbeat", beat, HeartbeatResponse, small)
    described = DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
    script.ask(f"{label} describe", described, DescribeGroupsResponse, min(version, 6))
    late = HeartbeatRequest(group_id=group, generation_id=generation + 7, member_id=member)
    script.ask(f"{label} wrong generation", late, HeartbeatResponse, small)
    leave = LeaveGroupRequest(group_id=group, member_id=member, members=[MemberIdentity(member_id=member)])
    script.ask(f"{label} leave", leave, LeaveGroupResponse, min(version, 5))
    script.ask(f"{label} leave again", leave, LeaveGroupResponse, min(version, 5))
    script.ask(f"{label} empty", described, DescribeGroupsResponse, min(version, 6))


def membership(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    for version in range(10):
        life_of_a_member(script, f"{name}-{version}", version)


def bad_joins(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    for label, request in {
        "no group": make_join_request(""),
        "short session": make_join_request(name, session_timeout_ms=10),
        "long session": make_join_request(name, session_timeout_ms=10_000_000),
        "unknown member": make_join_request(name, "nobody"),
        "no protocols": make_join_request(name, protocols=[]),
        "no protocol type": make_join_request(name, protocol_type=""),
    }.items():
        for version in (0, 3, 5, 9):
            script.ask(label, request, JoinGroupResponse, version)
    absent = name + "-absent"
    for version in range(5):
        beat = HeartbeatRequest(group_id=absent, generation_id=1, member_id="m")
        script.ask("heartbeat to nobody", beat, HeartbeatResponse, version)
        script.ask("sync with nobody", make_sync_request(absent, 1, "m"), SyncGroupResponse, version)
        leave = LeaveGroupRequest(group_id=absent, member_id="m", members=[MemberIdentity(member_id="m")])
        script.ask("leave nobody", leave, LeaveGroupResponse, version)


def a_stable_member(script: Transcript, group: str) -> tuple[str, int]:
    first = script.ask("join", make_join_request(group), JoinGroupResponse, 3)
    assert first is not None
    script.ask("sync", make_sync_request(group, first.generation_id, first.member_id), SyncGroupResponse, 3)
    return first.member_id, first.generation_id


def mismatches_in_a_stable_group(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    member, generation = a_stable_member(script, name)
    script.ask("other protocol", make_join_request(name, protocol="sticky"), JoinGroupResponse, 3)
    other_type = make_join_request(name, protocol_type="connect")
    script.ask("other type", other_type, JoinGroupResponse, 3)
    script.ask(
        "sync as other type", make_sync_request(name, generation, member, protocol_type="connect"), SyncGroupResponse, 5
    )
    script.ask(
        "sync as sticky", make_sync_request(name, generation, member, protocol_name="sticky"), SyncGroupResponse, 5
    )
    script.ask("sync of old", make_sync_request(name, generation - 1, member), SyncGroupResponse, 5)
    script.ask("sync as nobody", make_sync_request(name, generation, "nobody"), SyncGroupResponse, 5)
    script.ask("delete while used", DeleteGroupsRequest(groups_names=[name]), DeleteGroupsResponse, 2)


def static_members(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    for version in (5, 9):
        group = f"{name}-{version}"
        here = {"group_instance_id": "here"}
        first = script.ask(f"{version}: first", make_join_request(group, **here), JoinGroupResponse, version)
        assert first is not None
        synced = make_sync_request(group, first.generation_id, first.member_id, **here)
        script.ask(f"{version}: sync", synced, SyncGroupResponse, 5)
        again = script.ask(f"{version}: comes back", make_join_request(group, **here), JoinGroupResponse, version)
        assert again is not None
        old = HeartbeatRequest(
            group_id=group, generation_id=again.generation_id, member_id=first.member_id, group_instance_id="here"
        )
        script.ask(f"{version}: the old one is fenced", old, HeartbeatResponse, 4)
        away = LeaveGroupRequest(group_id=group, members=[MemberIdentity(group_instance_id="here")])
        script.ask(f"{version}: removed", away, LeaveGroupResponse, 5)
        unknown = LeaveGroupRequest(group_id=group, members=[MemberIdentity(group_instance_id="elsewhere")])
        script.ask(f"{version}: remove unknown", unknown, LeaveGroupResponse, 5)


def make_commit_request(
    group: str, topic: str, offset: int, topic_id: bytes = bytes(16), **more: object
) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="note")
    request = OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[part])]
    )
    for field, value in more.items():
        setattr(request, field, value)
    return request


def offsets(script: Transcript, name: str) -> None:
    topic_id = script.create_topic(name)
    wait_for_coordinator(script, name)
    for version in range(2, 11):
        known = topic_id if version == 10 else bytes(16)
        script.ask("commit", make_commit_request(name, name, version, known), OffsetCommitResponse, version)
        ask_offsets(script, "committed", name, name, known, version)
        ask_offsets(script, "unknown group", name + "-absent", name, known, version)
    ask_offsets(script, "first version", name, name, bytes(16), 1)
    for version in range(2, 8):
        script.ask("all topics", OffsetFetchRequest(group_id=name, topics=None), OffsetFetchResponse, version)
    everything = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None)])
    script.ask("all topics", everything, OffsetFetchResponse, 8)


def ask_offsets(script: Transcript, label: str, group: str, topic: str, topic_id: bytes, version: int) -> None:
    old = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 3])]
    new = [OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[0, 3])]
    request = OffsetFetchRequest(
        group_id=group, topics=old, groups=[OffsetFetchRequestGroup(group_id=group, topics=new)]
    )
    script.ask(label, request, OffsetFetchResponse, version)


def bad_commits(script: Transcript, name: str) -> None:
    script.create_topic(name)
    wait_for_coordinator(script, name)
    for label, request in {
        "unknown topic": make_commit_request(name, name + "-absent", 1),
        "generation of nobody": make_commit_request(name, name, 1, generation_id_or_member_epoch=3, member_id="m"),
        "no group": make_commit_request("", name, 1),
        "negative offset": make_commit_request(name, name, -5),
    }.items():
        for version in (2, 7, 9):
            script.ask(label, request, OffsetCommitResponse, version)
    long_note = make_commit_request(name, name, 1)
    long_note.topics[0].partitions[0].committed_metadata = "x" * 5000
    script.ask("long metadata", long_note, OffsetCommitResponse, 9)
    no_note = make_commit_request(name, name, 6)
    no_note.topics[0].partitions[0].committed_metadata = None
    script.ask("no metadata", no_note, OffsetCommitResponse, 9)
    ask_offsets(script, "after no metadata", name, name, bytes(16), 9)
    group = name + "-live"
    member, generation = a_stable_member(script, group)
    for label, request in {
        "as nobody": make_commit_request(group, name, 1),
        "old generation": make_commit_request(
            group, name, 1, generation_id_or_member_epoch=generation - 1, member_id=member
        ),
        "wrong member": make_commit_request(
            group, name, 1, generation_id_or_member_epoch=generation, member_id="other"
        ),
        "as the member": make_commit_request(
            group, name, 1, generation_id_or_member_epoch=generation, member_id=member
        ),
    }.items():
        script.ask(label, request, OffsetCommitResponse, 9)


def odd_commits(script: Transcript, name: str) -> None:
    """Commits with refused partitions. The order in a response is random."""
    topic_id = script.create_topic(name)
    wait_for_coordinator(script, name)
    note = {
        "at the limit": "x" * 4096,
        "above it": "x" * 4097,
        "of many bytes": "ä" * 4096,
        "of pairs": "\U0001f600" * 2049,
    }
    for label, metadata in note.items():
        request = make_commit_request(name, name, 1)
        request.topics[0].partitions[0].committed_metadata = metadata
        script.ask(f"metadata {label}", request, OffsetCommitResponse, 9)
    for version in (2, 9, 10):
        request = make_commit_request(name, name, version, topic_id)
        for index in (0, 7, -1):
            part = OffsetCommitRequestPartition(
                partition_index=index, committed_offset=20 + index, committed_leader_epoch=3
            )
            request.topics[0].partitions.append(part)
        for absent, absent_id in {name + "-absent": b"\x07" * 16, "": bytes(16), "no/slashes": b"\x08" * 16}.items():
            request.topics += make_commit_request(name, absent, 1, absent_id).topics
        answer = script.client.call(request, OffsetCommitResponse, version)
        parts = [(topic, part) for topic in answer.topics for part in topic.partitions]
        results = sorted(
            (topic.name, topic.topic_id != topic_id, part.partition_index, part.error_code) for topic, part in parts
        )
        script.note(f"some {version}", [str(result) for result in results])
        ask_offsets(script, "after some", name, name, topic_id if version == 10 else bytes(16), version)


def administration(script: Transcript, name: str) -> None:
    script.create_topic(name)
    wait_for_coordinator(script, name)
    script.ask("commit", make_commit_request(name, name, 1), OffsetCommitResponse, 9)
    script.ask_every_version("unknown", DescribeGroupsRequest(groups=[name + "-absent"]), DescribeGroupsResponse)
    script.ask_every_version("offsets only", DescribeGroupsRequest(groups=[name]), DescribeGroupsResponse)
    script.ask("no name", DescribeGroupsRequest(groups=[""]), DescribeGroupsResponse, 5)
    filtered = ListGroupsRequest(states_filter=["Frobnicated"])
    script.ask("in no such state", filtered, ListGroupsResponse, 4)
    script.ask("of no such type", ListGroupsRequest(types_filter=["frobnicated"]), ListGroupsResponse, 5)
    for version in range(3):
        request = DeleteGroupsRequest(groups_names=[name + "-absent", ""])
        script.ask("delete unknown", request, DeleteGroupsResponse, version)
    script.ask("delete", DeleteGroupsRequest(groups_names=[name]), DeleteGroupsResponse, 2)
    script.ask("delete again", DeleteGroupsRequest(groups_names=[name]), DeleteGroupsResponse, 2)


def coordinators(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    request = FindCoordinatorRequest(key=name, coordinator_keys=[name, name + "-other"])
    script.ask_every_version("group", request, FindCoordinatorResponse)
    script.ask("type 9", FindCoordinatorRequest(key=name, key_type=9), FindCoordinatorResponse, 2)
    nameless = FindCoordinatorRequest(key="", coordinator_keys=[""])
    script.ask("empty key", nameless, FindCoordinatorResponse, 2)
    script.ask("empty key", nameless, FindCoordinatorResponse, 4)


SCRIPTS = (
    membership,
    bad_joins,
    mismatches_in_a_stable_group,
    static_members,
    offsets,
    bad_commits,
    odd_commits,
    administration,
    coordinators,
)
