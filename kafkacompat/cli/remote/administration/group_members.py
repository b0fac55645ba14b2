"""The members of groups of each type, and the partitions that they are assigned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.remote.administration.group_listing import CLASSIC, GroupListing
from kafkacompat.cli.remote.cluster import GROUP_KEY
from kafkacompat.cli.remote.errors import RemoteError, explain_refusal
from kafkacompat.wire.apis.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kafkacompat.wire.apis.describe_groups import DescribedGroupMember, DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from kafkacompat.wire.apis.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from kafkacompat.wire.consumer_protocol import read_assignment
from kafkacompat.wire.primitives import MalformedError

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.wire.schema import Request, Response

CONSUMER_PROTOCOL = "consumer"


@dataclass
class MemberDescription:
    """A member of a group; ``partitions`` is empty as well where an assignment is of no known form."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[PartitionName] = field(default_factory=list)


@dataclass
class GroupDescription:
    """A group with its members; ``assignor`` is empty where there is none."""

    group_id: str
    group_type: str
    state: str
    coordinator: int
    assignor: str
    members: list[MemberDescription]


def describe_group(cluster: RemoteCluster, listing: GroupListing) -> GroupDescription:
    """Read a group from its coordinator; raises RemoteError and NoResponseError."""
    read = _READERS.get(listing.group_type, _read_classic)
    return read(cluster, listing)


def _request_group(cluster: RemoteCluster, group_id: str, request: Request, response: type[Response]) -> Any:
    """Return the one group of a response; raises RemoteError if the coordinator refuses."""
    answered: Any = cluster.request_coordinator(
        group_id,
        GROUP_KEY,
        request,
        response,
        lambda answer: answer.groups[0].error_code,  # type: ignore[attr-defined]
    )
    (group,) = answered.groups
    if group.error_code:
        message = getattr(group, "error_message", None)
        raise RemoteError(f"the group {group_id} is not shown: {explain_refusal(group.error_code, message)}")
    return group


def _read_classic(cluster: RemoteCluster, listing: GroupListing) -> GroupDescription:
    request = DescribeGroupsRequest(groups=[listing.group_id])
    group = _request_group(cluster, listing.group_id, request, DescribeGroupsResponse)
    members = [
        MemberDescription(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            _read_classic_assignment(group.protocol_type, member),
        )
        for member in group.members
    ]
    return _describe(listing, group.group_state, group.protocol_data, members)


def _read_classic_assignment(protocol_type: str, member: DescribedGroupMember) -> list[PartitionName]:
    """Return the partitions of a consumer; members of other protocols, such as Connect's, have assignments of their own form."""
    if protocol_type != CONSUMER_PROTOCOL or not member.member_assignment:
        return []
    try:
        assignment = read_assignment(member.member_assignment)
    except MalformedError:
        return []
    return sorted(
        PartitionName(topic.topic, index) for topic in assignment.assigned_partitions for index in topic.partitions
    )


def _read_consumer(cluster: RemoteCluster, listing: GroupListing) -> GroupDescription:
    request = ConsumerGroupDescribeRequest(group_ids=[listing.group_id])
    group = _request_group(cluster, listing.group_id, request, ConsumerGroupDescribeResponse)
    return _describe(listing, group.group_state, group.assignor_name, list(map(_read_member, group.members)))


def _read_share(cluster: RemoteCluster, listing: GroupListing) -> GroupDescription:
    request = ShareGroupDescribeRequest(group_ids=[listing.group_id])
    group = _request_group(cluster, listing.group_id, request, ShareGroupDescribeResponse)
    return _describe(listing, group.group_state, group.assignor_name, list(map(_read_member, group.members)))


def _read_member(member: Any) -> MemberDescription:
    """Read a member of a consumer or a share group."""
    partitions = sorted(
        PartitionName(topic.topic_name, index)
        for topic in member.assignment.topic_partitions
        for index in topic.partitions
    )
    instance_id = getattr(member, "instance_id", None)
    return MemberDescription(member.member_id, instance_id, member.client_id, member.client_host, partitions)


def _read_streams(cluster: RemoteCluster, listing: GroupListing) -> GroupDescription:
    request = StreamsGroupDescribeRequest(group_ids=[listing.group_id])
    group = _request_group(cluster, listing.group_id, request, StreamsGroupDescribeResponse)
    subtopologies = (group.topology.subtopologies if group.topology is not None else None) or []
    topics = {
        subtopology.subtopology_id: [
            *subtopology.source_topics,
            *(topic.name for topic in subtopology.repartition_source_topics),
        ]
        for subtopology in subtopologies
    }
    members = [
        MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            sorted(_list_task_partitions(member.assignment.active_tasks, topics)),
        )
        for member in group.members
    ]
    return _describe(listing, group.group_state, "", members)


def _list_task_partitions(tasks: Iterable[Any], topics: dict[str, list[str]]) -> Iterator[PartitionName]:
    """Yield the partitions that tasks read: those of the same number in each topic of their subtopology."""
    for task in tasks:
        for topic in topics.get(task.subtopology_id, ()):
            for index in task.partitions:
                yield PartitionName(topic, index)


def _describe(listing: GroupListing, state: str, assignor: str, members: list[MemberDescription]) -> GroupDescription:
    members.sort(key=lambda member: member.member_id)
    return GroupDescription(listing.group_id, listing.group_type, state, listing.coordinator, assignor, members)


_READERS: dict[str, Callable[[RemoteCluster, GroupListing], GroupDescription]] = {
    CLASSIC: _read_classic,
    "consumer": _read_consumer,
    "share": _read_share,
    "streams": _read_streams,
}
