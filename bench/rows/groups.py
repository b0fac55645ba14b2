"""Consumer groups: one large group, and many small ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from itertools import cycle

from bench.row import Goal, Options, Row, Samples
from bench.topics import unused_name
from bench.usage import Usage
from compat_tests.brokers import Broker
from compat_tests.raw_client import RawClient
from compat_tests.same_answers.groups import make_join_request, make_sync_request, wait_for_coordinator
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import pause, until
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.apis.join_group import JoinGroupResponse, JoinGroupResponseMember
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kafkacompat.wire.apis.sync_group import SyncGroupRequestAssignment, SyncGroupResponse
from kafkacompat.wire.errors import ErrorCode

# The last version in which a new member joins with a single request.
JOIN_VERSION = 3
SYNC_VERSION = 3
HEARTBEAT_VERSION = 3
LEAVE_VERSION = 3
TIMEOUT_MS = 45_000

LARGE = 100
GROUPS = 1000
MEMBERS = 3
HEARTBEAT_SECONDS = 5
SECONDS = 30
SETTLING_SECONDS = 2
# The size of an assignment of one partition of a topic with a long name.
ASSIGNMENT = bytes(40)


class Member:
    """A member of a classic group on a connection of its own; sending and receiving are separate methods."""

    def __init__(self, port: int, group: str) -> None:
        self.group = group
        self.member_id = ""
        self._client = RawClient(port, timeout_seconds=120)
        self._generation = -1
        self._led: list[JoinGroupResponseMember] = []
        self._is_unanswered = False

    def close(self) -> None:
        """Close the connection without leaving the group."""
        self._client.socket.close()

    def send_join(self) -> None:
        """Send JoinGroup, to join or to stay."""
        request = make_join_request(
            self.group, self.member_id, session_timeout_ms=TIMEOUT_MS, rebalance_timeout_ms=TIMEOUT_MS
        )
        self._client.send(request, JOIN_VERSION)

    def receive_join(self) -> int:
        """Wait for JoinGroup's response; return the number of members if this one is the leader, else 0."""
        answer = self._client.receive(JoinGroupResponse, JOIN_VERSION)
        assert not answer.error_code, f"JoinGroup was answered with the error {answer.error_code}"
        self.member_id, self._generation, self._led = answer.member_id, answer.generation_id, answer.members
        return len(self._led)

    def send_sync(self) -> None:
        """Send SyncGroup; the leader's request holds all assignments."""
        given = [SyncGroupRequestAssignment(member_id=member.member_id, assignment=ASSIGNMENT) for member in self._led]
        self._client.send(
            make_sync_request(self.group, self._generation, self.member_id, assignments=given), SYNC_VERSION
        )

    def receive_sync(self) -> None:
        """Wait for the assignment."""
        answer = self._client.receive(SyncGroupResponse, SYNC_VERSION)
        assert not answer.error_code, f"SyncGroup was answered with the error {answer.error_code}"

    def send_heartbeat(self) -> None:
        """Send a heartbeat, after checking the response to the one before."""
        self.receive_heartbeat()
        self._client.send(self._heartbeat(), HEARTBEAT_VERSION)
        self._is_unanswered = True

    def receive_heartbeat(self) -> None:
        """Wait for the last heartbeat's response, if it is still outstanding."""
        if self._is_unanswered:
            answer = self._client.receive(HeartbeatResponse, HEARTBEAT_VERSION)
            assert not answer.error_code, f"Heartbeat was answered with the error {answer.error_code}"
            self._is_unanswered = False

    def is_to_join_again(self) -> bool:
        """Return whether a rebalance has begun, according to a heartbeat."""
        answer = self._client.call(self._heartbeat(), HeartbeatResponse, HEARTBEAT_VERSION)
        return answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS

    def _heartbeat(self) -> HeartbeatRequest:
        return HeartbeatRequest(group_id=self.group, generation_id=self._generation, member_id=self.member_id)

    def leave(self) -> None:
        """Leave the group."""
        request = LeaveGroupRequest(group_id=self.group, members=[MemberIdentity(member_id=self.member_id)])
        self._client.call(request, LeaveGroupResponse, LEAVE_VERSION)


def send_joins(members: Sequence[Member]) -> None:
    """Let all members send JoinGroup."""
    for member in members:
        member.send_join()


def settle_members(members: Sequence[Member], size: int) -> None:
    """After their JoinGroups, wait until all members are in a generation of *size* members of their group."""
    sizes = {member.receive_join() for member in members}
    assert sizes == {0, size}, f"leaders were told of {sorted(sizes)} members in place of {size}"
    for member in members:
        member.send_sync()
    for member in members:
        member.receive_sync()


def new_members(stack: ExitStack, broker: Broker, group: str, count: int) -> list[Member]:
    """Yield connected members; after the block each leaves its group and closes its connection."""
    members = [stack.enter_context(closing(Member(broker.port, group))) for _ in range(count)]
    for member in members:
        stack.callback(member.leave)
    return members


def ready_group(broker: Broker) -> str:
    """Return the name of a new group, once its coordinator is ready."""
    group = unused_name()
    with closing(Transcript(broker.port)) as script:
        wait_for_coordinator(script, group)
    return group


def measure_rebalance(broker: Broker, _: Options) -> Samples:
    """Let one more member join a stable group, and all others rejoin at once."""
    with ExitStack() as stack:
        members = new_members(stack, broker, ready_group(broker), LARGE)
        newcomer, *others = members
        send_joins(others)
        settle_members(others, LARGE - 1)
        begun = time.monotonic()
        newcomer.send_join()
        # A member that rejoins before the newcomer keeps its old generation.
        until(others[0].is_to_join_again, every_seconds=0)
        send_joins(others)
        last = time.monotonic()
        settle_members(members, LARGE)
        over = time.monotonic()
    return {"ms since the first JoinGroup": (over - begun) * 1e3, "ms since the last JoinGroup": (over - last) * 1e3}


def measure_groups(broker: Broker, options: Options) -> Samples:
    """Keep the groups alive for some seconds, with the heartbeats of all members spread evenly."""
    name, groups, seconds = ready_group(broker), options.count(GROUPS), max(2.0, SECONDS * options.scale)
    with ExitStack() as stack:
        members = [
            member for number in range(groups) for member in new_members(stack, broker, f"{name}-{number}", MEMBERS)
        ]
        send_joins(members)
        settle_members(members, MEMBERS)
        pause(SETTLING_SECONDS)
        with Usage(broker) as usage:
            sent = send_heartbeats(members, seconds)
        resident_bytes = broker.resident_bytes()
    return {
        "broker share of a core": usage.cpu_seconds / usage.seconds,
        "heartbeats/s": sent / usage.seconds,
        "resident MB": resident_bytes / 1e6,
    }


def send_heartbeats(members: Sequence[Member], seconds: float) -> int:
    """Let every member send a heartbeat every five seconds; return the number of heartbeats with a response."""
    count, begun = int(len(members) * seconds / HEARTBEAT_SECONDS), time.monotonic()
    for number, member in zip(range(count), cycle(members), strict=False):
        pause(max(0.0, begun + number * HEARTBEAT_SECONDS / len(members) - time.monotonic()))
        member.send_heartbeat()
    for member in members:
        member.receive_heartbeat()
    return count


# So that a new group's first generation, which is not measured, holds all members.
FIRST_GENERATION = {"group.initial.rebalance.delay.ms": "2000"}

ROWS = [
    Row(
        "rebalance-100",
        "Rebalance of a group of 100",
        "A classic group has 99 members, each on its own connection. One more joins, and all others rejoin as soon as one "
        "heartbeat reports the rebalance. The time ends with the last response to SyncGroup. It counts from the newcomer's "
        "JoinGroup, which is the first, and from the last member's JoinGroup. A rebalance of a group with members does not wait "
        "for group.initial.rebalance.delay.ms.",
        measure_rebalance,
        [Goal("ms since the last JoinGroup", 1000, at_least=False, is_ratio=False)],
        properties=FIRST_GENERATION,
    ),
    Row(
        "groups-1000",
        "1,000 groups of three members",
        f"3,000 connections, one a member. Each member sends a heartbeat every {HEARTBEAT_SECONDS} s and nothing else, evenly spread, "
        f"for {SECONDS} s.",
        measure_groups,
        [Goal("broker share of a core", 0.25, at_least=False, is_ratio=False)],
        properties=FIRST_GENERATION,
    ),
]
