"""Offsets by partition, and the JSON in which Spark's Kafka source takes and reports them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from spark_integration.errors import PipelineError


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


Offsets = dict[TopicPartition, int]
# From the first offset up to the last one, which is not part of it.
Interval = tuple[int, int]
# No record has it: a batch that names it as its end reads up to the last record.
MAX_OFFSET = 2**63 - 1


class RecordSpan(NamedTuple):
    """Records of one partition, from the first offset to the last one, which is part of it."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    records: int


def parse_offsets(text: str) -> Offsets:
    """Read ``{"topic":{"0":23}}`` (Spark guide, startingOffsets); raises PipelineError."""
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in json.loads(text).items()
            for partition, offset in partitions.items()
        }
    except (ValueError, AttributeError, TypeError) as problem:
        raise PipelineError(f'{text!r} are no offsets: give them as {{"topic":{{"0":23}}}}') from problem


def format_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """Write offsets as Spark's ``startingOffsets`` and ``endingOffsets`` take them."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics)


def count_offsets_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    """Count the offsets from *start* to *end* over all partitions; a partition that *start* lacks counts from 0."""
    return sum(max(0, offset - start.get(partition, 0)) for partition, offset in end.items())


def join_intervals(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the intervals in order, those that touch or overlap as one."""
    joined: list[Interval] = []
    for first, until in sorted(intervals):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], until))
        else:
            joined.append((first, until))
    return joined


def subtract_intervals(interval: Interval, covered: Sequence[Interval]) -> list[Interval]:
    """Return the parts of *interval* that lie in none of *covered*, which are in order."""
    left, (position, end) = [], interval
    for first, until in covered:
        if position < min(first, end):
            left.append((position, min(first, end)))
        position = max(position, until)
    return [*left, (position, end)] if position < end else left


def intersect_intervals(interval: Interval, covered: Iterable[Interval]) -> list[Interval]:
    """Return the parts of *interval* that lie in *covered*."""
    cut = ((max(first, interval[0]), min(until, interval[1])) for first, until in covered)
    return [(first, until) for first, until in cut if first < until]
