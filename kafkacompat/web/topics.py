"""Topics and partitions, page by page, so that the work of a page does not grow with the cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacompat.config.resources import ResourceType
from kafkacompat.monitoring.administration.answers import HttpError
from kafkacompat.web.errors import check, explain
from kafkacompat.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkacompat.wire.apis.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kafkacompat.wire.apis.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from kafkacompat.wire.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import format_uuid

if TYPE_CHECKING:
    from kafkacompat.monitoring.administration.requests import InternalRequests

TOPICS_A_PAGE = 50
PARTITIONS_A_PAGE = 100
MAX_SCANNED = 20_000
"""Partitions that one page looks at in search of a topic, or of partitions with problems."""
MAX_PROBLEMS = 1000
"""Partitions with problems in one page, which a single topic may have."""
MAX_SIZED = 2_000
"""Partitions whose sizes one page sums up."""
SCANNED_A_TURN = 1000
OFFSETS_A_TURN = 200
"""Partitions in a request for offsets."""
EARLIEST, LATEST = -2, -1
FROM_LEADER, FROM_ANY_REPLICA = -1, -2
DEFAULT_SOURCE = 5


@dataclass
class PartitionRow:
    """One partition; the offsets and the size are None if this broker does not have them."""

    topic: str
    index: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    in_sync: list[int]
    offline: list[int]
    start_offset: int | None = None
    end_offset: int | None = None
    size_bytes: int | None = None

    @property
    def problem(self) -> str:
        """What is wrong with the partition; "" if nothing is."""
        if self.leader < 0:
            return "no leader"
        return "under-replicated" if len(self.in_sync) < len(self.replicas) else ""


@dataclass
class TopicState:
    """One topic. Its size is what this broker stores; None if that is not known."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: list[PartitionRow] = field(default_factory=list)
    size_bytes: int | None = None

    @property
    def replication(self) -> int:
        """The replicas of its first partition."""
        return len(self.partitions[0].replicas) if self.partitions else 0

    @property
    def problems(self) -> int:
        """How many of its partitions have a problem."""
        return sum(1 for partition in self.partitions if partition.problem)


class TopicPage(NamedTuple):
    """A page of topics; ``after`` is the name that the next page begins after, "" on the last one."""

    topics: list[TopicState]
    after: str


class Config(NamedTuple):
    """One entry of a configuration; ``value`` is None for a secret."""

    name: str
    value: str | None
    is_default: bool
    documentation: str


class ProblemPage(NamedTuple):
    """Partitions with problems, and the name of the topic to continue after, "" at the end.

    ``is_cut`` is whether the last topic has more of them than a page shows.
    """

    partitions: list[PartitionRow]
    following: str
    is_cut: bool


async def scan_topics(requests: InternalRequests, after: str = "") -> AsyncIterator[TopicState]:
    """Yield the topics that the user may see, in the order of their names, after the topic *after*."""
    cursor = Cursor(topic_name=after, partition_index=0) if after else None
    pending: TopicState | None = None
    while True:
        request = DescribeTopicPartitionsRequest(response_partition_limit=SCANNED_A_TURN, cursor=cursor)
        response = await requests.send(request)
        for topic in response.topics:
            if topic.error_code or topic.name is None or topic.name == after:
                continue
            if pending is not None and pending.name == topic.name:
                pending.partitions += _read_topic(topic).partitions
                continue
            if pending is not None:
                yield pending
            pending = _read_topic(topic)
        cursor = response.next_cursor
        if cursor is None:
            break
    if pending is not None:
        yield pending


def _read_topic(topic: Any) -> TopicState:
    partitions = [_read_partition(topic.name, partition) for partition in topic.partitions]
    return TopicState(topic.name, format_uuid(topic.topic_id), topic.is_internal, partitions)


def _read_partition(topic: str, partition: Any) -> PartitionRow:
    return PartitionRow(
        topic,
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        partition.replica_nodes,
        partition.isr_nodes,
        partition.offline_replicas,
    )


async def list_topics(requests: InternalRequests, search: str, after: str) -> TopicPage:
    """Return a page of the topics whose names contain *search*, with their sizes."""
    topics: list[TopicState] = []
    scanned, wanted, following = 0, search.lower(), ""
    async for topic in scan_topics(requests, after):
        if len(topics) == TOPICS_A_PAGE:
            following = topics[-1].name
            break
        scanned += len(topic.partitions)
        if wanted in topic.name.lower():
            topics.append(topic)
        if scanned >= MAX_SCANNED:
            following = topic.name
            break
    await add_sizes(requests, topics)
    return TopicPage(topics, following)


async def list_problems(requests: InternalRequests, after: str) -> ProblemPage:
    """Return a page of the partitions with problems."""
    problems: list[PartitionRow] = []
    scanned = 0
    async for topic in scan_topics(requests, after):
        problems += [partition for partition in topic.partitions if partition.problem]
        scanned += len(topic.partitions)
        if len(problems) >= PARTITIONS_A_PAGE or scanned >= MAX_SCANNED:
            return ProblemPage(problems[:MAX_PROBLEMS], topic.name, is_cut=len(problems) > MAX_PROBLEMS)
    return ProblemPage(problems, "", is_cut=False)


async def describe_topic(requests: InternalRequests, name: str) -> TopicState:
    """Return a topic with all its partitions, without offsets and sizes; raises HttpError."""
    state, cursor = None, None
    while state is None or cursor is not None:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name)], response_partition_limit=SCANNED_A_TURN, cursor=cursor
        )
        response = await requests.send(request)
        if not response.topics:
            break
        (topic,) = response.topics
        check(topic.error_code, f"the topic {name}")
        if state is None:
            state = TopicState(name, format_uuid(topic.topic_id), topic.is_internal)
        state.partitions += [_read_partition(name, partition) for partition in topic.partitions]
        cursor = response.next_cursor
    if state is None:
        raise HttpError(*explain(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the topic {name}"))
    state.partitions.sort(key=attrgetter("index"))
    return state


async def add_offsets(requests: InternalRequests, partitions: list[PartitionRow], node_id: int) -> None:
    """Add the first offset and the end of partitions, as far as this broker has a replica of them."""
    for timestamp, attribute in ((EARLIEST, "start_offset"), (LATEST, "end_offset")):
        offsets = await find_offsets(requests, partitions, timestamp, node_id)
        for partition in partitions:
            setattr(partition, attribute, offsets.get((partition.topic, partition.index)))


async def find_offsets(
    requests: InternalRequests, partitions: Iterable[PartitionRow], timestamp: int, node_id: int
) -> dict[tuple[str, int], int]:
    """Return the offsets for a timestamp by topic and partition; those that are not known or not there are left out."""
    offsets: dict[tuple[str, int], int] = {}
    by_replica: dict[int, dict[str, list[ListOffsetsPartition]]] = {FROM_LEADER: {}, FROM_ANY_REPLICA: {}}
    for partition in partitions:
        if node_id in partition.replicas:
            replica_id = FROM_LEADER if partition.leader == node_id else FROM_ANY_REPLICA
            wanted = ListOffsetsPartition(partition_index=partition.index, timestamp=timestamp)
            by_replica[replica_id].setdefault(partition.topic, []).append(wanted)
    for replica_id, topics in _split_look_ups(by_replica):
        response = await requests.send(ListOffsetsRequest(replica_id=replica_id, topics=topics))
        for topic in response.topics:
            for answered in topic.partitions:
                if not answered.error_code and answered.offset >= 0:
                    offsets[topic.name, answered.partition_index] = answered.offset
    return offsets


def _split_look_ups(
    by_replica: Mapping[int, Mapping[str, list[ListOffsetsPartition]]],
) -> Iterator[tuple[int, list[ListOffsetsTopic]]]:
    """Yield look-ups for requests of a turn each, with the id of the replica that makes them."""
    for replica_id, by_topic in by_replica.items():
        for name, wanted in by_topic.items():
            for start in range(0, len(wanted), OFFSETS_A_TURN):
                yield replica_id, [ListOffsetsTopic(name=name, partitions=wanted[start : start + OFFSETS_A_TURN])]


async def add_sizes(requests: InternalRequests, topics: list[TopicState]) -> None:
    """Add the sizes of topics and of their partitions, as far as the user may see them and they are few enough."""
    left = MAX_SIZED
    wanted = []
    for topic in topics:
        left -= len(topic.partitions)
        if left < 0:
            break
        indexes = [partition.index for partition in topic.partitions]
        wanted.append(DescribableLogDirTopic(topic=topic.name, partitions=indexes))
    if not wanted:
        return
    sizes = await _read_sizes(requests, wanted)
    if sizes is None:
        return
    for topic in topics[: len(wanted)]:
        for partition in topic.partitions:
            partition.size_bytes = sizes.get((topic.name, partition.index))
        topic.size_bytes = sum(partition.size_bytes or 0 for partition in topic.partitions)


async def _read_sizes(
    requests: InternalRequests, wanted: list[DescribableLogDirTopic]
) -> Mapping[tuple[str, int], int] | None:
    response = await requests.send(DescribeLogDirsRequest(topics=wanted))
    if response.error_code:
        return None
    sizes: dict[tuple[str, int], int] = {}
    for directory in response.results:
        for topic in directory.topics:
            for partition in topic.partitions:
                key = topic.name, partition.partition_index
                sizes[key] = sizes.get(key, 0) + partition.partition_size
    return sizes


async def describe_configs(requests: InternalRequests, kind: ResourceType, name: str) -> list[Config] | None:
    """Return the configuration of a resource, values that were set first; None if the user may not see it."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    response = await requests.send(DescribeConfigsRequest(resources=[resource], include_documentation=True))
    (result,) = response.results
    if result.error_code:
        return None
    configs = [
        Config(
            entry.name,
            None if entry.is_sensitive else entry.value or "",
            entry.config_source == DEFAULT_SOURCE,
            entry.documentation or "",
        )
        for entry in result.configs
    ]
    return sorted(configs, key=lambda config: (config.is_default, config.name))
