"""Offsets by partition, and the JSON in which Spark's Kafka source takes and reports them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from spark_integration.errors import PipelineError


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


Offsets = dict[TopicPartition, int]
# No record has it: batches that name it as their end go as far as there are records.
MAX_OFFSET = 2**63 - 1


def offsets_of_json(text: str) -> Offsets:
    """Read ``{"topic":{"0":23}}`` (Spark guide, startingOffsets); raises PipelineError."""
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in json.loads(text).items()
            for partition, offset in partitions.items()
        }
    except (ValueError, AttributeError, TypeError) as problem:
        raise PipelineError(f'{text!r} are no offsets: give them as {{"topic":{{"0":23}}}}') from problem


def json_of_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """Write offsets as Spark's ``startingOffsets`` and ``endingOffsets`` take them."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics)


def distance(behind: Mapping[TopicPartition, int], ahead: Mapping[TopicPartition, int]) -> int:
    """Count the offsets from *behind* to *ahead* over all partitions; one that *behind* lacks counts from 0."""
    return sum(max(0, offset - behind.get(partition, 0)) for partition, offset in ahead.items())
