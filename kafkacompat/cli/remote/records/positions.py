"""Offsets at which the partitions of a topic begin, end, or reach a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.cli.remote.errors import RemoteError, UsageProblem, explain_refusal, suggest_name
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster

EARLIEST, LATEST = -2, -1
"""The timestamps that stand for the first and the next offset."""
_NO_OFFSET = -1
_FIRST_SINGLE_VERSION = 1
"""Version 0 of ListOffsets returns the ends of segments."""

Offsets = Mapping[int, int]
"""Offsets by partition."""


class StartKind(Enum):
    """The point at which reading starts."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    LAST = "last"
    TIMESTAMP = "timestamp"


class Start(NamedTuple):
    """Where reading starts; *number* is an offset, a count of records from the end, or a time in ms since 1970."""

    kind: StartKind
    number: int = 0


class Span(NamedTuple):
    """The offsets of a partition to read: from *start* up to, and without, *end*."""

    start: int
    end: int


def read_partitions(cluster: RemoteCluster, topic: str) -> dict[int, int]:
    """Return the leaders of a topic's partitions; raises RemoteError for a topic that cannot be read."""
    (description,) = cluster.read_topics([topic])
    if description.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        names = [known.name for known in cluster.read_topics() if known.name]
        raise RemoteError(f"there is no topic {topic}{suggest_name(topic, names)}: see `kafkacompat topics list`")
    if description.error_code:
        raise RemoteError(f"topic {topic} cannot be read: {explain_refusal(description.error_code)}")
    return {partition.partition_index: partition.leader_id for partition in description.partitions}


def choose_partitions(topic: str, leaders: Mapping[int, int], wanted: Iterable[int]) -> list[int]:
    """Return the partitions to read, all of them if none is wanted; raises RemoteError and UsageProblem."""
    chosen = sorted(set(wanted)) or sorted(leaders)
    for number in chosen:
        if number not in leaders:
            raise UsageProblem(f"--partition {number}: topic {topic} has the partitions 0 to {max(leaders)}")
        if leaders[number] < 0:
            raise RemoteError(f"partition {number} of {topic} has no leader: see `kafkacompat status`")
    return chosen


class PartitionOffsets:
    """Looks up the offsets of some partitions of a topic at their leaders."""

    def __init__(
        self, cluster: RemoteCluster, topic: str, leaders: Mapping[int, int], partitions: Iterable[int], isolation: int
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._isolation = isolation
        self._by_leader: dict[int, list[int]] = defaultdict(list)
        for partition in partitions:
            self._by_leader[leaders[partition]].append(partition)

    def find_spans(self, start: Start) -> dict[int, Span]:
        """Return what to read of each partition, from *start* to the present end; raises RemoteError."""
        ends = self.look_up(LATEST)
        begins = self.look_up(EARLIEST)
        if start.kind is StartKind.LATEST:
            return {partition: Span(end, end) for partition, end in ends.items()}
        if start.kind is StartKind.TIMESTAMP:
            found = self.look_up(start.number)
            return {part: Span(end if found[part] == _NO_OFFSET else found[part], end) for part, end in ends.items()}
        return {part: Span(_find_start(start, begins[part], end), end) for part, end in ends.items()}

    def look_up(self, timestamp: int) -> dict[int, int]:
        """Return the offset of the first record from *timestamp* on (EARLIEST and LATEST are such), or -1 without one."""
        offsets: dict[int, int] = {}
        for leader, partitions in self._by_leader.items():
            offsets |= self._look_up_at(leader, partitions, timestamp)
        return offsets

    def _look_up_at(self, leader: int, partitions: list[int], timestamp: int) -> dict[int, int]:
        wanted = [ListOffsetsPartition(partition_index=number, timestamp=timestamp) for number in partitions]
        topics = [ListOffsetsTopic(name=self._topic, partitions=wanted)]
        request = ListOffsetsRequest(replica_id=-1, isolation_level=self._isolation, topics=topics)
        response = self._cluster.request_broker(leader, request, ListOffsetsResponse)
        offsets = {}
        for result in response.topics[0].partitions:
            if result.error_code:
                reason = explain_refusal(result.error_code)
                raise RemoteError(f"partition {result.partition_index} of {self._topic} cannot be read: {reason}")
            # Version 0 returns a list, which is empty if there is none.
            old = [*result.old_style_offsets, _NO_OFFSET]
            offsets[result.partition_index] = old[0] if result.old_style_offsets else result.offset
        return offsets


def _find_start(start: Start, begin: int, end: int) -> int:
    if start.kind is StartKind.EARLIEST:
        return begin
    wanted = end - start.number if start.kind is StartKind.LAST else start.number
    # An offset beyond the end has no record yet, and one before the begin has none any more.
    return max(begin, min(wanted, end))
