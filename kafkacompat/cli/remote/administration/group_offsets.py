"""The offsets that groups have committed, or, for share groups, the offsets that they start at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.remote.cluster import GROUP_KEY
from kafkacompat.cli.remote.errors import RemoteError, explain_refusal
from kafkacompat.wire.apis.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkacompat.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.wire.apis.metadata import MetadataResponseTopic

NO_GENERATION = -1
"""The generation of a commit by a client that is no member."""


class GroupPosition(NamedTuple):
    """Where a group is in a partition; ``lag`` is None where the brokers do not say it."""

    offset: int
    lag: int | None = None


def read_committed_offsets(
    cluster: RemoteCluster, group_id: str, topics: Iterable[MetadataResponseTopic]
) -> dict[PartitionName, GroupPosition]:
    """Return the offsets of a group by partition; *topics* are those of the cluster, for the names of their ids.

    Raises RemoteError if the coordinator refuses.
    """
    group = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    request = OffsetFetchRequest(group_id=group_id, topics=None, groups=[group])
    response = cluster.request_coordinator(group_id, GROUP_KEY, request, OffsetFetchResponse, _find_fetch_code)
    code = _find_fetch_code(response)
    if code:
        raise RemoteError(f"the offsets of the group {group_id} are not shown: {explain_refusal(code)}")
    names = {topic.topic_id: topic.name or "" for topic in topics}
    offsets = {}
    for topic in response.groups[0].topics if response.groups else response.topics:
        # From version 10 topics have ids in place of names.
        name = topic.name or names.get(getattr(topic, "topic_id", b""), "")
        for partition in topic.partitions:
            if not partition.error_code and partition.committed_offset >= 0:
                key = PartitionName(name, partition.partition_index)
                offsets[key] = GroupPosition(partition.committed_offset)
    return offsets


def _find_fetch_code(response: OffsetFetchResponse) -> int:
    return response.groups[0].error_code if response.groups else response.error_code


def read_share_offsets(cluster: RemoteCluster, group_id: str) -> dict[PartitionName, GroupPosition]:
    """Return the start offsets of a share group by partition; raises RemoteError if the coordinator refuses."""
    group = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    response = cluster.request_coordinator(
        group_id,
        GROUP_KEY,
        DescribeShareGroupOffsetsRequest(groups=[group]),
        DescribeShareGroupOffsetsResponse,
        lambda answer: answer.groups[0].error_code,
    )
    (described,) = response.groups
    if described.error_code:
        reason = explain_refusal(described.error_code, described.error_message)
        raise RemoteError(f"the offsets of the group {group_id} are not shown: {reason}")
    return {
        PartitionName(topic.topic_name, partition.partition_index): GroupPosition(
            partition.start_offset, partition.lag if partition.lag >= 0 else None
        )
        for topic in described.topics
        for partition in topic.partitions
        if not partition.error_code and partition.start_offset >= 0
    }


def commit_offsets(
    cluster: RemoteCluster,
    group_id: str,
    offsets: Mapping[PartitionName, int],
    topics: Iterable[MetadataResponseTopic],
) -> dict[PartitionName, int]:
    """Commit offsets for a group without members; returns the error codes of the refused partitions."""
    ids = {topic.name: topic.topic_id for topic in topics}
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for name, offset in offsets.items():
        partition = OffsetCommitRequestPartition(
            partition_index=name.partition, committed_offset=offset, committed_metadata=""
        )
        by_topic.setdefault(name.topic, []).append(partition)
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=NO_GENERATION,
        topics=[
            OffsetCommitRequestTopic(name=topic, topic_id=ids[topic], partitions=partitions)
            for topic, partitions in by_topic.items()
        ],
    )
    response = cluster.request_coordinator(group_id, GROUP_KEY, request, OffsetCommitResponse, _find_commit_code)
    names = {topic.topic_id: topic.name or "" for topic in topics}
    return {
        PartitionName(topic.name or names.get(topic.topic_id, ""), partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code
    }


def _find_commit_code(response: OffsetCommitResponse) -> int:
    """Return the error code of the first partition: those about the coordinator are the same in all."""
    codes = (partition.error_code for topic in response.topics for partition in topic.partitions)
    return next(codes, 0)
