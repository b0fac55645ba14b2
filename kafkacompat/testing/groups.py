"""The lag of consumer groups, computed in the thread of the brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.testing.errors import BrokerError
from kafkacompat.testing.nodes import TRANSIENT_ERRORS
from kafkacompat.testing.reading import TopicReader, decode
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkacompat.wire.errors import KafkaError, describe_code

if TYPE_CHECKING:
    from kafkacompat.testing.nodes import Nodes

OFFSET_FETCH_VERSION = 9
"""The last version that names topics."""
READ_BELOW = 64
"""Remaining offsets that are read, to leave out those of transaction markers: no consumer commits after them."""


class PartitionLag(NamedTuple):
    """The committed offset of a group in a partition (None: it has committed nothing), the end, and the records between."""

    topic: str
    partition: int
    committed: int | None
    end: int
    records: int

    def __str__(self) -> str:
        committed = "nothing" if self.committed is None else f"offset {self.committed}"
        return f"{self.topic}-{self.partition}: {committed} committed of {self.end}, {self.records} records remain"


async def list_lags(nodes: Nodes, group: str) -> list[PartitionLag] | None:
    """Return the lag in each partition of the topics in which a group has committed offsets; None without a coordinator.

    Raises BrokerError.
    """
    committed = await _list_committed(nodes, group)
    if committed is None:
        return None
    lags: list[PartitionLag] = []
    for topic in sorted({topic for topic, _ in committed}):
        image = nodes.find_topic(topic)
        for index in range(0 if image is None else len(image.partitions)):
            lag = await _measure(nodes, topic, index, committed.get((topic, index)))
            if lag is None:
                return None
            lags.append(lag)
    return lags


async def _list_committed(nodes: Nodes, group: str) -> dict[tuple[str, int], int] | None:
    coordinator = await nodes.find_coordinator(group)
    if coordinator is None:
        return None
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    (answer,) = (await coordinator.request(request, OFFSET_FETCH_VERSION)).groups
    if answer.error_code in TRANSIENT_ERRORS:
        return None
    if answer.error_code:
        raise BrokerError(f"the offsets of group {group} cannot be read: {describe_code(answer.error_code, None)}")
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in answer.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }


async def _measure(nodes: Nodes, topic: str, index: int, committed: int | None) -> PartitionLag | None:
    """Return the lag in one partition; None while it has no leader."""
    leader = nodes.find_leader(topic, index)
    if leader is None:
        return None
    try:
        partition = leader.broker.replica_manager.find(topic, index)
    except KafkaError:
        return None
    end = partition.high_watermark.offset
    position = max(partition.log.log_start_offset, committed or 0)
    remaining = max(0, end - position)
    if 0 < remaining <= READ_BELOW:
        stable = partition.last_stable_offset
        remaining = await _count_committed(nodes, topic, index, position) + max(0, end - max(position, stable))
    return PartitionLag(topic, index, committed, end, remaining)


async def _count_committed(nodes: Nodes, topic: str, index: int, position: int) -> int:
    """Count the records from an offset on that belong to no transaction, or to a committed one."""
    reader = TopicReader(nodes, topic, "read_committed", {index: position})
    fetched = await reader.fetch_partition(index)
    return 0 if fetched is None else sum(record.offset >= position for record in decode(topic, fetched))
