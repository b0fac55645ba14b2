"""Offsets of partitions by time, as their leaders find them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.wire.apis.metadata import MetadataResponseTopic

LATEST, EARLIEST = -1, -2
CONSUMER = -1
UNKNOWN = -1
PARTITIONS_A_REQUEST = 5000


def find_leaders(topics: Iterable[MetadataResponseTopic]) -> dict[PartitionName, int]:
    """Return the leader of each partition, -1 for none."""
    return {
        PartitionName(topic.name or "", partition.partition_index): partition.leader_id
        for topic in topics
        for partition in topic.partitions
    }


def divide_by_leader(leaders: Mapping[PartitionName, int], most: int) -> Iterator[tuple[int, list[PartitionName]]]:
    """Yield each leader with up to *most* of its partitions at a time; partitions without a leader are left out."""
    by_leader: dict[int, list[PartitionName]] = defaultdict(list)
    for name, leader in leaders.items():
        if leader >= 0:
            by_leader[leader].append(name)
    for leader, names in by_leader.items():
        for start in range(0, len(names), most):
            yield leader, names[start : start + most]


def find_offsets(
    cluster: RemoteCluster, leaders: Mapping[PartitionName, int], timestamp: int, isolation_level: int = 0
) -> dict[PartitionName, int]:
    """Return the offset of each partition for LATEST, EARLIEST or a time in ms since 1970.

    With *isolation_level* 1, read_committed, LATEST is the last stable offset.
    The offset is -1 if no record has this timestamp or a later one. A partition without a leader, or whose leader refuses,
    is left out.
    """
    offsets: dict[PartitionName, int] = {}
    for leader, names in divide_by_leader(leaders, PARTITIONS_A_REQUEST):
        request = _build_request(names, timestamp, isolation_level)
        response = cluster.request_broker(leader, request, ListOffsetsResponse)
        for topic in response.topics:
            for partition in topic.partitions:
                if not partition.error_code:
                    name = PartitionName(topic.name, partition.partition_index)
                    offsets[name] = _read_offset(partition)
    return offsets


def _build_request(names: Iterable[PartitionName], timestamp: int, isolation_level: int) -> ListOffsetsRequest:
    partitions: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for name in names:
        partitions[name.topic].append(ListOffsetsPartition(partition_index=name.partition, timestamp=timestamp))
    topics = [ListOffsetsTopic(name=topic, partitions=wanted) for topic, wanted in partitions.items()]
    return ListOffsetsRequest(replica_id=CONSUMER, isolation_level=isolation_level, topics=topics)


def _read_offset(partition: ListOffsetsPartitionResponse) -> int:
    """Return the offset; a response of version 0 has a list, and the offset is its first item."""
    return partition.old_style_offsets[0] if partition.old_style_offsets else partition.offset
