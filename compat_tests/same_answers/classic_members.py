"""Members of classic groups, each with a connection of its own, as requests of a member wait for those of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from compat_tests.raw_client import RawClient
from compat_tests.same_answers.groups import (
    make_commit_request,
    make_join_request,
    make_sync_request,
    wait_for_coordinator,
)
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kafkacompat.wire.apis.offset_commit import OffsetCommitResponse
from kafkacompat.wire.apis.sync_group import SyncGroupRequestAssignment, SyncGroupResponse
from kafkacompat.wire.consumer_protocol import ConsumerProtocolSubscription, write_subscription
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from typing_extensions import Self

ID_REQUIRED_VERSION = 4


class Member:
    """A client and its last responses; ``name`` is its client id, and the content of its metadata and its assignment.

    ``joining`` are fields of each of its JoinGroups.
    """

    def __init__(self, script: Transcript, group: str, name: str, **joining: Any) -> None:
        self.script = script
        self.group = group
        self.name = name
        self.version = joining.pop("version", 9)
        self.instance_id = joining.get("group_instance_id")
        self.joining = {"protocols": make_protocols(name, "range"), **joining}
        self.member_id = ""
        self.generation = -1
        self.protocol = "range"
        self.connect()

    def connect(self) -> None:
        """Begin a connection."""
        self.client = RawClient(self.script.port, client_id=self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.socket.close()

    def note(self, label: str, answer: object) -> None:
        self.script.note(f"{self.group}, {label}: {self.name}", answer)

    # JoinGroup

    def request(self, **more: Any) -> JoinGroupRequest:
        return make_join_request(self.group, **{"member_id": self.member_id, **self.joining, **more})

    def ask_to_join(self, **more: Any) -> None:
        """Join without waiting for the answer; a new dynamic member gets its id first."""
        request = self.request(**more)
        if not request.member_id and self.instance_id is None and self.version >= ID_REQUIRED_VERSION:
            request.member_id = self.member_id = self.wanted_id(**more)
        self.client.send(request, self.version)

    def wanted_id(self, **more: Any) -> str:
        """Ask for an id."""
        answer = self.client.call(self.request(**more), JoinGroupResponse, self.version)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer
        return answer.member_id

    def joined(self, label: str) -> None:
        """Note the answer to a JoinGroup."""
        answer = self.client.receive(JoinGroupResponse, self.version)
        answer.members.sort(key=lambda member: bytes(member.metadata))
        self.note(f"{label}, joined", answer)
        if not answer.error_code:
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.protocol = answer.protocol_name or ""

    def joins(self, label: str, **more: Any) -> None:
        """Join, and note the answer."""
        self.ask_to_join(**more)
        self.joined(label)

    def is_refused(self, label: str, **more: Any) -> None:
        """Send a JoinGroup as it is, and note the answer."""
        self.client.send(self.request(**more), self.version)
        self.note(f"{label}, refused", self.client.receive(JoinGroupResponse, self.version))

    # SyncGroup

    def ask_to_sync(self, *members: Member, **more: Any) -> None:
        """Ask for the assignment without waiting for the answer; a leader assigns its name to each of *members*."""
        given = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=member.name.encode())
            for member in members
        ]
        fields = {"assignments": given, "group_instance_id": self.instance_id, "protocol_name": self.protocol}
        fields["protocol_type"] = self.joining.get("protocol_type", "consumer")
        self.client.send(make_sync_request(self.group, self.generation, self.member_id, **fields | more), 5)

    def synced(self, label: str) -> None:
        """Note the answer to a SyncGroup."""
        self.note(f"{label}, synced", self.client.receive(SyncGroupResponse, 5))

    def syncs(self, label: str, *members: Member, **more: Any) -> None:
        """Ask for the assignment, and note the answer."""
        self.ask_to_sync(*members, **more)
        self.synced(label)

    # Everything else

    def beat(self, **more: Any) -> HeartbeatResponse:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        for field, value in more.items():
            setattr(request, field, value)
        return self.client.call(request, HeartbeatResponse, 4)

    def beats(self, label: str, **more: Any) -> None:
        """Send a heartbeat, and note the answer."""
        self.note(f"{label}, heartbeat", self.beat(**more))

    def hears_of_it(self) -> None:
        """Send heartbeats until one says that the group rebalances."""
        until(lambda: self.beat().error_code == ErrorCode.REBALANCE_IN_PROGRESS)

    def commits(self, label: str, topic: str, version: int = 9, **more: Any) -> None:
        """Commit an offset, and note the answer."""
        named = {"member_id": self.member_id, "generation_id_or_member_epoch": self.generation}
        request = make_commit_request(self.group, topic, 5, **{**named, "group_instance_id": self.instance_id, **more})
        self.note(f"{label}, commit", self.client.call(request, OffsetCommitResponse, version))

    def is_alive(self, label: str, topic: str) -> None:
        """Note the responses to all requests that members send between two JoinGroups."""
        self.beats(label)
        self.syncs(label)
        self.commits(label, topic)

    def leaves(self, label: str) -> None:
        """Leave, and note the answer."""
        itself = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id, reason="enough")
        self.takes_out(label, itself)

    def takes_out(self, label: str, *members: MemberIdentity) -> None:
        """Take members out, and note the answer."""
        request = LeaveGroupRequest(group_id=self.group, members=list(members))
        self.note(f"{label}, left", self.client.call(request, LeaveGroupResponse, 5))


def make_protocols(metadata: str, *names: str, topics: Sequence[str] = ("nothing",)) -> list[JoinGroupRequestProtocol]:
    """Return a member's protocols: all of these, with a subscription to *topics*."""
    subscription = ConsumerProtocolSubscription(topics=list(topics), user_data=metadata.encode())
    return [JoinGroupRequestProtocol(name=name, metadata=write_subscription(subscription, 0)) for name in names]


@contextmanager
def make_company(script: Transcript, group: str, *names: str, **joining: Any) -> Iterator[list[Member]]:
    """Members that are in no group yet."""
    wait_for_coordinator(script, group)
    with ExitStack() as stack:
        yield [stack.enter_context(Member(script, group, name, **joining)) for name in names]


def join_generation(label: str, *members: Member) -> None:
    """Let members join one generation; the first is the leader of a new group."""
    first, *others = members
    first.ask_to_join()
    first.member_id = first.client.receive(JoinGroupResponse, first.version).member_id
    for member in others:
        member.ask_to_join()
    until(lambda: len(look_at(first.script, first.group).members) == len(members))
    first.ask_to_join()
    for member in members:
        member.joined(label)


def sync_generation(label: str, *members: Member) -> None:
    """Let all members of a generation have their assignments; the first is the leader."""
    for member in members:
        member.ask_to_sync(*(members if member is members[0] else ()))
    for member in members:
        member.synced(label)


def look_at(script: Transcript, group: str) -> DescribedGroup:
    answer = script.client.call(DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse, 6).groups[0]
    answer.members.sort(key=lambda member: member.client_id)
    return answer


def note_description(script: Transcript, label: str, group: str) -> None:
    """Note the description of a group."""
    script.note(f"{label}: described", look_at(script, group))
