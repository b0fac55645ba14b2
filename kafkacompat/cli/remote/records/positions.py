"""Offsets at which the partitions of a topic begin, end, or reach a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.remote.administration.log_offsets import EARLIEST, LATEST, UNKNOWN, find_offsets
from kafkacompat.cli.remote.errors import RemoteError, explain_refusal, suggest_name
from kafkacompat.cli.remote.records.failures import OptionError
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster


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


def choose_partitions(topic: str, leaders: Mapping[int, int], wanted: Iterable[int]) -> dict[int, int]:
    """Return the leaders of the partitions to read, all of them if none is wanted; raises RemoteError and OptionError."""
    chosen = sorted(set(wanted)) or sorted(leaders)
    for number in chosen:
        if number not in leaders:
            raise OptionError(f"--partition {number}: topic {topic} has the partitions 0 to {max(leaders)}")
        if leaders[number] < 0:
            raise RemoteError(f"partition {number} of {topic} has no leader: see `kafkacompat status`")
    return {number: leaders[number] for number in chosen}


def find_spans(
    cluster: RemoteCluster, topic: str, leaders: Mapping[int, int], start: Start, isolation_level: int
) -> dict[int, Span]:
    """Return what to read of each partition, from *start* to the present end; raises RemoteError.

    *leaders* has the partitions to read, and *isolation_level* decides which end counts, as in ListOffsets.
    """

    def look_up(timestamp: int) -> dict[int, int]:
        names = {PartitionName(topic, partition): leader for partition, leader in leaders.items()}
        offsets = find_offsets(cluster, names, timestamp, isolation_level)
        if missing := sorted(names.keys() - offsets.keys()):
            raise RemoteError(f"the leader of partition {missing[0].partition} of {topic} returns no offset: try again")
        return {name.partition: offset for name, offset in offsets.items()}

    ends = look_up(LATEST)
    if start.kind is StartKind.LATEST:
        return {partition: Span(end, end) for partition, end in ends.items()}
    if start.kind is StartKind.TIMESTAMP:
        starts = look_up(start.number)
        return {part: Span(end if starts[part] == UNKNOWN else starts[part], end) for part, end in ends.items()}
    begins = look_up(EARLIEST)
    return {part: Span(_find_start(start, begins[part], end), end) for part, end in ends.items()}


def _find_start(start: Start, begin: int, end: int) -> int:
    if start.kind is StartKind.EARLIEST:
        return begin
    wanted = end - start.number if start.kind is StartKind.LAST else start.number
    # An offset beyond the end has no record yet, and one before the begin has none any more.
    return max(begin, min(wanted, end))
