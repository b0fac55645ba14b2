"""Groups of consumers with members and lag, as far as this broker coordinates them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacompat.monitoring.administration.answers import HttpError
from kafkacompat.timers import Clock, sort_in_turns, yield_in_turns
from kafkacompat.web.errors import check
from kafkacompat.web.topics import LATEST, PartitionRow, describe_topic, find_offsets
from kafkacompat.wire.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest
from kafkacompat.wire.apis.list_groups import ListGroupsRequest
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkacompat.wire.consumer_protocol import read_assignment, read_topics
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import MalformedError

if TYPE_CHECKING:
    from kafkacompat.monitoring.administration.requests import InternalRequests

GROUPS_A_PAGE = 20
OFFSETS_A_PAGE = 200
MAX_MEMBERS = 200
MAX_TOPICS = 50
"""Topics of a group whose ends are looked up."""
MAX_LAG_PARTITIONS = 1_000
"""Partitions of a group whose lag a list of groups adds up."""
BY_NAME_VERSION = 9
"""The newest version of OffsetFetch that names topics."""
CLASSIC_TYPE, CONSUMER_TYPE = "classic", "consumer"


@dataclass
class GroupSummary:
    """One group; ``lag`` is None if it is not known, and ``problem`` says why the group is not described."""

    group_id: str
    state: str
    group_type: str
    protocol: str
    members: int | None = None
    lag: int | None = None
    problem: str = ""


class GroupPage(NamedTuple):
    """A page of groups, the number of all groups that match, and the number of the page from 0."""

    groups: list[GroupSummary]
    total: int
    number: int

    @property
    def has_next(self) -> bool:
        """Whether another page follows."""
        return (self.number + 1) * GROUPS_A_PAGE < self.total


class Member(NamedTuple):
    """A member of a group; ``topics`` are those that it subscribes to, ``partitions`` its assignment."""

    member_id: str
    client_id: str
    host: str
    instance_id: str
    topics: list[str]
    partitions: list[str]


@dataclass
class CommittedOffsetRow:
    """The committed offset of a partition; ``end`` and ``lag`` are None if this broker has no replica of it."""

    topic: str
    partition: int
    offset: int
    metadata: str
    end: int | None = None

    @property
    def lag(self) -> int | None:
        """The records between the committed offset and the end."""
        return None if self.end is None or self.offset < 0 else max(self.end - self.offset, 0)


@dataclass
class GroupDetails:
    """A group with its members and a page of its offsets; ``has_next`` is whether another page follows."""

    group: GroupSummary
    assignor: str = ""
    members: list[Member] = field(default_factory=list)
    offsets: list[CommittedOffsetRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    has_next: bool = False


async def list_groups(requests: InternalRequests, clock: Clock, search: str, number: int, node_id: int) -> GroupPage:
    """Return a page of the groups whose ids contain *search*, with members and lag; raises HttpError."""
    response = await requests.send(ListGroupsRequest())
    check(response.error_code, "the groups")
    wanted = search.lower()
    matching = [group async for group in yield_in_turns(clock, response.groups) if wanted in group.group_id.lower()]
    matching = await sort_in_turns(clock, matching, attrgetter("group_id"))
    shown = matching[number * GROUPS_A_PAGE : (number + 1) * GROUPS_A_PAGE]
    groups = [GroupSummary(group.group_id, group.group_state, group.group_type, group.protocol_type) for group in shown]
    for group in groups:
        await _add_summary(requests, clock, group, node_id)
    return GroupPage(groups, len(matching), number)


async def _add_summary(requests: InternalRequests, clock: Clock, group: GroupSummary, node_id: int) -> None:
    try:
        await _describe(requests, group)
        offsets = await _read_offsets(requests, clock, group.group_id)
    except HttpError as problem:
        group.problem = str(problem)
        return
    if len(offsets) <= MAX_LAG_PARTITIONS:
        await _add_ends(requests, offsets, node_id)
        group.lag = add_up_lag(offsets)


def add_up_lag(offsets: list[CommittedOffsetRow]) -> int | None:
    """Return the lag of all partitions together; None if that of one is not known."""
    lags = [offset.lag for offset in offsets]
    return sum(lag for lag in lags if lag is not None) if None not in lags else None


async def describe_group(
    requests: InternalRequests, clock: Clock, group_id: str, number: int, node_id: int
) -> GroupDetails:
    """Return a group with its members and a page of its offsets, from 0; raises HttpError."""
    group = GroupSummary(group_id, "", CLASSIC_TYPE, "")
    details = await _describe(requests, group)
    offsets = await _read_offsets(requests, clock, group_id)
    offsets = await sort_in_turns(clock, offsets, attrgetter("topic", "partition"))
    details.has_next = (number + 1) * OFFSETS_A_PAGE < len(offsets)
    if len(offsets) > OFFSETS_A_PAGE:
        details.notes.append(f"offsets {number * OFFSETS_A_PAGE + 1} and following of {len(offsets)} are shown")
    details.offsets = offsets[number * OFFSETS_A_PAGE : (number + 1) * OFFSETS_A_PAGE]
    details.notes += await _add_ends(requests, details.offsets, node_id)
    group.lag = add_up_lag(details.offsets)
    if group.members is not None and group.members > MAX_MEMBERS:
        details.notes.append(f"{MAX_MEMBERS} of {group.members} members are shown")
    return details


async def _describe(requests: InternalRequests, group: GroupSummary) -> GroupDetails:
    """Complete the state of a group, and return it with its first members; raises HttpError."""
    subject = f"the group {group.group_id}"
    if group.group_type == CONSUMER_TYPE:
        request = ConsumerGroupDescribeRequest(group_ids=[group.group_id])
        (described,) = (await requests.send(request)).groups
        check(described.error_code, subject)
        group.state, group.members = described.group_state, len(described.members)
        return GroupDetails(group, described.assignor_name, list(map(_read_consumer, described.members[:MAX_MEMBERS])))
    (described,) = (await requests.send(DescribeGroupsRequest(groups=[group.group_id]))).groups
    if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        # It may be one of the other protocol.
        group.group_type = CONSUMER_TYPE
        return await _describe(requests, group)
    check(described.error_code, subject)
    group.state, group.protocol, group.members = described.group_state, described.protocol_type, len(described.members)
    return GroupDetails(group, described.protocol_data, list(map(_read_classic, described.members[:MAX_MEMBERS])))


def _read_consumer(member: Any) -> Member:
    partitions = [
        f"{topic.topic_name}-{index}" for topic in member.assignment.topic_partitions for index in topic.partitions
    ]
    topics = [*member.subscribed_topic_names, *filter(None, [member.subscribed_topic_regex])]
    return Member(member.member_id, member.client_id, member.client_host, member.instance_id or "", topics, partitions)


def _read_classic(member: Any) -> Member:
    topics: list[str] = []
    partitions: list[str] = []
    try:
        # Members of other kinds, such as Connect's workers, have other bytes here.
        topics = read_topics(member.member_metadata) if member.member_metadata else []
        if member.member_assignment:
            assigned = read_assignment(member.member_assignment).assigned_partitions
            partitions = [f"{topic.topic}-{index}" for topic in assigned for index in topic.partitions]
    except MalformedError:
        pass
    return Member(
        member.member_id, member.client_id, member.client_host, member.group_instance_id or "", topics, partitions
    )


async def _read_offsets(requests: InternalRequests, clock: Clock, group_id: str) -> list[CommittedOffsetRow]:
    wanted = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    (group,) = (await requests.send(OffsetFetchRequest(groups=[wanted]), BY_NAME_VERSION)).groups
    check(group.error_code, f"the group {group_id}")
    partitions = ((topic.name, partition) for topic in group.topics for partition in topic.partitions)
    return [
        CommittedOffsetRow(topic, partition.partition_index, partition.committed_offset, partition.metadata or "")
        async for topic, partition in yield_in_turns(clock, partitions)
        if not partition.error_code
    ]


async def _add_ends(requests: InternalRequests, offsets: list[CommittedOffsetRow], node_id: int) -> list[str]:
    """Add the ends of the partitions, and return a sentence for each topic whose ends are not known."""
    notes = []
    committed: dict[str, set[int]] = {}
    for offset in offsets:
        committed.setdefault(offset.topic, set()).add(offset.partition)
    partitions: list[PartitionRow] = []
    for topic, indexes in islice(committed.items(), MAX_TOPICS):
        try:
            described = await describe_topic(requests, topic)
        except HttpError as problem:
            notes.append(str(problem))
        else:
            partitions += [partition for partition in described.partitions if partition.index in indexes]
    ends = await find_offsets(requests, partitions, LATEST, node_id)
    for offset in offsets:
        offset.end = ends.get((offset.topic, offset.partition))
    return notes
