"""The offsets that an audit reads: resolved once, so that every pass over a topic reads the same ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from spark_integration.audit.places import PlaceCuts
from spark_integration.errors import PipelineError
from spark_integration.topics.cluster import Cluster, OffsetSpec
from spark_integration.topics.offsets import MAX_OFFSET, Offsets, TopicPartition, format_offsets, parse_offsets
from spark_integration.topics.source import STRATEGIES, find_source_topics

COMMITTED = "read_committed"
ISOLATION = "kafka.isolation.level"
# Options of the source that name its beginning or its end; a resolved range replaces all of them.
BOUNDS = tuple(
    f"{end}{kind}" for end in ("starting", "ending") for kind in ("Offsets", "Timestamp", "OffsetsByTimestamp")
)
SPECS = {-2: OffsetSpec.EARLIEST, -1: OffsetSpec.LATEST}


class ReadRange(NamedTuple):
    """Offsets of a partition, from `start` up to `end`, which is not part of it."""

    start: int
    end: int


Ranges = dict[TopicPartition, ReadRange]
EVERYTHING = ReadRange(0, MAX_OFFSET)


def resolve_ranges(cluster: Cluster, source: Mapping[str, str]) -> Ranges:
    """Ask the cluster which offsets the options name now (Spark Kafka guide, batch queries).

    Under read_committed the end is the last stable offset. If no record is as late as a given time, the end is used in
    its place. Raises PipelineError.
    """
    partitions = existing_partitions(cluster, source)
    committed = source.get(ISOLATION) == COMMITTED
    first = cluster.offsets(partitions, OffsetSpec.EARLIEST)
    last = cluster.offsets(partitions, OffsetSpec.LATEST, read_committed=committed)
    starts = _resolve_ends(cluster, source, "starting", first, {-2: first, -1: last})
    ends = _resolve_ends(cluster, source, "ending", last, {-2: first, -1: last})
    for partition in partitions:
        _check_range(partition, starts[partition], ends[partition], ReadRange(first[partition], last[partition]))
    return {
        partition: ReadRange(starts[partition], max(starts[partition], ends[partition])) for partition in partitions
    }


def find_cuts(cluster: Cluster, ranges: Ranges) -> PlaceCuts:
    """Find the partitions that hold, or held, more than *ranges*; to be called once the ranges were read."""
    now = cluster.offsets(ranges, OffsetSpec.LATEST)
    return PlaceCuts(
        before=frozenset(partition for partition, read_range in ranges.items() if read_range.start > 0),
        after=frozenset(
            partition for partition, read_range in ranges.items() if now.get(partition, read_range.end) > read_range.end
        ),
    )


def existing_partitions(cluster: Cluster, source: Mapping[str, str]) -> list[TopicPartition]:
    """Return the partitions that the options name; raises PipelineError if one is missing."""
    existing = cluster.partitions(find_source_topics(cluster, source))
    if "assign" not in source:
        return existing
    assigned = json.loads(source["assign"])
    wanted = [TopicPartition(topic, int(number)) for topic, numbers in assigned.items() for number in numbers]
    if missing := sorted(set(wanted) - set(existing)):
        raise PipelineError(f"topic {missing[0].topic} has no partition {missing[0].partition}: correct --assign")
    return wanted


def source_of_ranges(source: Mapping[str, str], ranges: Ranges, **changed: str) -> dict[str, str]:
    """Return the options of the source that read exactly *ranges*."""
    kept = {name: value for name, value in source.items() if name not in BOUNDS and name not in STRATEGIES}
    assigned: dict[str, list[int]] = {}
    for topic, partition in sorted(ranges):
        assigned.setdefault(topic, []).append(partition)
    return {
        **kept,
        **changed,
        "assign": json.dumps(assigned),
        "startingOffsets": format_offsets({partition: read_range.start for partition, read_range in ranges.items()}),
        "endingOffsets": format_offsets({partition: read_range.end for partition, read_range in ranges.items()}),
    }


def _resolve_ends(
    cluster: Cluster, source: Mapping[str, str], end: str, otherwise: Offsets, named: Mapping[int, Offsets]
) -> Offsets:
    """Return one end of each partition.

    As in Spark, one time for all partitions overrides times of each, and these override offsets.
    """
    if text := source.get(option := f"{end}Timestamp"):
        time_ms = _parse_timestamp(text, option)
        return _offsets_at_times(cluster, dict.fromkeys(otherwise, time_ms), named[-1])
    if text := source.get(option := f"{end}OffsetsByTimestamp"):
        return _offsets_at_times(cluster, _parse_for_all(text, otherwise, option), named[-1])
    text = source.get(option := f"{end}Offsets", "")
    if text in ("", "earliest", "latest"):
        return {"": otherwise, "earliest": named[-2], "latest": named[-1]}[text]
    said = _parse_for_all(text, otherwise, option)
    return {partition: named[offset][partition] if offset in named else offset for partition, offset in said.items()}


def _offsets_at_times(cluster: Cluster, times_ms: Mapping[TopicPartition, int], late: Offsets) -> Offsets:
    """Return the first offset as late as the time of each, at most *late*, after which a transaction may be open."""
    offsets: Offsets = {}
    for time_ms in set(times_ms.values()):
        offsets |= cluster.offsets(
            [partition for partition, wanted_ms in times_ms.items() if wanted_ms == time_ms], time_ms
        )
    return {partition: min(offsets.get(partition, late[partition]), late[partition]) for partition in times_ms}


def _parse_for_all(text: str, partitions: Iterable[TopicPartition], option: str) -> dict[TopicPartition, int]:
    said = parse_offsets(text)
    if missing := [partition for partition in partitions if partition not in said]:
        raise PipelineError(f"--{option} lacks partition {missing[0].partition} of {missing[0].topic}: add it")
    return {partition: said[partition] for partition in partitions}


def _parse_timestamp(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError as problem:
        raise PipelineError(f"--{option} {text!r} is no time: give milliseconds since 1970") from problem


def _check_range(partition: TopicPartition, start: int, end: int, held: ReadRange) -> None:
    if start < held.start or end > held.end:
        raise PipelineError(
            f"offsets {start} to {end} of partition {partition.partition} of {partition.topic} do not exist: "
            f"it holds {held.start} to {held.end}"
        )
