"""A script in two parts: groups in many states when their broker is killed, and after its restart.

Meanwhile its properties become `PROPERTIES_AFTER`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from compat_tests.same_answers.classic_members import (
    Member,
    join_generation,
    look_at,
    make_company,
    make_protocols,
    note_description,
    sync_generation,
)
from compat_tests.same_answers.groups import ask_offsets, make_commit_request, wait_for_coordinator
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.apis.join_group import JoinGroupResponse
from kafkacompat.wire.apis.offset_commit import OffsetCommitRequestPartition, OffsetCommitResponse
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from kafkacompat.wire.errors import ErrorCode

PROPERTIES_AFTER = {
    "group.max.size": "2",
    "group.initial.rebalance.delay.ms": "700",
    "offsets.retention.check.interval.ms": "100",
    # Kafka does not let a broker in while it holds the one that was killed to be alive.
    "broker.session.timeout.ms": "4000",
}
OUTLIVED_MS = 1
RETENTION_VERSION = 4


class Members:
    """A company for each of several groups, until the broker is killed and after."""

    def __init__(self, script: Transcript, name: str, stack: ExitStack) -> None:
        self.script = script
        self.name = name
        self._stack = stack
        self._all: list[Member] = []

    def of(self, group: str, *names: str, **joining: object) -> list[Member]:
        members = self._stack.enter_context(make_company(self.script, f"{self.name}-{group}", *names, **joining))
        self._all += members
        return members

    def connect(self) -> None:
        """Come back to a broker that was away."""
        self.script.reconnect()
        for member in self._all:
            member.client.socket.close()
            member.connect()
        for group in {member.group for member in self._all}:
            wait_for_coordinator(self.script, group)


def outlive_a_kill(script: Transcript, name: str) -> Iterator[None]:
    """Groups in every state; yields when the broker is to be killed."""
    with ExitStack() as stack:
        members = Members(script, name, stack)
        parts = [part(members) for part in PARTS]
        for part in parts:
            next(part)
        yield
        members.connect()
        for part in parts:
            next(part, None)


def stable(members: Members) -> Iterator[None]:
    """A stable group continues."""
    a, b = members.of("stable", "a", "b")
    members.script.create_topic(a.group)
    join_generation("before", a, b)
    sync_generation("before", a, b)
    yield
    for member in (a, b):
        member.is_alive("stable", a.group)
    note_description(a.script, "stable", a.group)
    b.joins("unchanged")
    a.ask_to_join()
    b.hears_of_it()
    b.ask_to_join()
    for member in (a, b):
        member.joined("again")


def static(members: Members) -> Iterator[None]:
    """A member that was restarted too has its place."""
    (a,) = members.of("static", "a")
    a.instance_id = a.joining["group_instance_id"] = "instance-a"
    a.joins("before")
    a.syncs("before", a)
    yield
    a.is_alive("after", f"{members.name}-stable")
    a.member_id = ""
    a.joins("back")
    a.is_alive("back", f"{members.name}-stable")


def preparing(members: Members) -> Iterator[None]:
    """The generation before goes on."""
    a, b = members.of("preparing", "a", "b")
    a.joins("preparing")
    a.syncs("preparing", a)
    b.ask_to_join()
    a.hears_of_it()
    yield
    a.is_alive("was preparing", f"{members.name}-stable")
    b.is_refused("was preparing")
    note_description(a.script, "was preparing", a.group)


def completing(members: Members) -> Iterator[None]:
    """The generation that has no assignment is unknown."""
    a, b = members.of("completing", "a", "b")
    a.joins("completing")
    a.syncs("completing", a)
    b.ask_to_join()
    a.hears_of_it()
    a.ask_to_join()
    a.joined("not assigned yet")
    b.joined("not assigned yet")
    yield
    a.is_alive("was completing", f"{members.name}-stable")
    b.is_alive("was completing", f"{members.name}-stable")
    a.joins("was completing")


def first(members: Members) -> Iterator[None]:
    """A group without any assignment is unknown after the restart."""
    (a,) = members.of("first", "a")
    a.joins("first")
    yield
    a.beats("was first")
    a.syncs("was first", a)
    a.is_refused("was first")


def too_large(members: Members) -> Iterator[None]:
    """The last member to rejoin is refused."""
    a, b, c = members.of("large", "a", "b", "c")
    join_generation("large", a, b, c)
    sync_generation("large", a, b, c)
    yield
    a.hears_of_it()
    a.ask_to_join()
    b.ask_to_join()
    other_type = c.request(protocol_type="other")
    until(lambda: c.client.call(other_type, JoinGroupResponse, 9).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED)
    c.is_refused("too large")


def arriving(members: Members) -> Iterator[None]:
    """The first members of a group are given a moment to arrive together.

    They join in version 3: Kafka deletes a group without offsets at its next look, ids that it has given out or not.
    """
    a, b = members.of("arriving", "a", "b", version=3)
    yield
    a.ask_to_join()
    until(lambda: len(look_at(a.script, a.group).members) == 1)
    b.ask_to_join()
    a.joined("arriving")
    b.joined("arriving")


def expiring(members: Members) -> Iterator[None]:
    """Offsets that were to be kept for a moment go, but for those of topics that members read (KIP-211)."""
    script, name = members.script, members.name
    read, other = f"{name}-read", f"{name}-other"
    for topic in (read, other):
        script.create_topic(topic, 2)
    (live,) = members.of("live", "a", version=3, protocols=make_protocols("a", "range", topics=[read]))
    (connect,) = members.of("connect", "a", version=3, protocol_type="connect")
    (away,) = members.of("away", "a", version=3)
    for member in (live, connect, away):
        member.joins(member.group)
        member.syncs(member.group, member)
    away.leaves(away.group)
    simple, deleted = f"{name}-simple", f"{name}-deleted"
    wait_for_coordinator(script, simple)
    committers: dict[str, dict[str, Any]] = {
        live.group: {"member_id": live.member_id, "generation_id_or_member_epoch": live.generation},
        connect.group: {"member_id": connect.member_id, "generation_id_or_member_epoch": connect.generation},
        away.group: {},
        simple: {},
        deleted: {},
    }
    for group, identity in committers.items():
        for topic in (read, other):
            short = make_commit_request(group, topic, 3, retention_time_ms=OUTLIVED_MS, **identity)
            script.ask(f"{group} commits {topic} for a moment", short, OffsetCommitResponse, RETENTION_VERSION)
    kept = make_commit_request(simple, read, 4)
    kept.topics[0].partitions = [OffsetCommitRequestPartition(partition_index=1, committed_offset=4)]
    script.ask("commits for good", kept, OffsetCommitResponse, RETENTION_VERSION)
    script.ask("delete", DeleteGroupsRequest(groups_names=[deleted]), DeleteGroupsResponse, 2)
    yield
    until(lambda: look_at(script, away.group).error_code == ErrorCode.GROUP_ID_NOT_FOUND)
    until(lambda: not has_offset(script, simple, read) and not has_offset(script, live.group, other))
    for group in (live.group, connect.group, away.group, simple, deleted):
        for topic in (read, other):
            ask_offsets(script, f"{group} of {topic}", group, topic, bytes(16), 7)
        note_description(script, group, group)


def has_offset(script: Transcript, group: str, topic: str) -> bool:
    wanted = OffsetFetchRequest(group_id=group, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])])
    return script.client.call(wanted, OffsetFetchResponse, 7).topics[0].partitions[0].committed_offset >= 0


PARTS = (stable, static, preparing, completing, first, too_large, arriving, expiring)
