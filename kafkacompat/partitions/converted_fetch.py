"""Fetches of clients that read message sets: what the log has is converted.

A batch may have nothing to convert: control batches are left out, and so are records in front of the fetch offset. A client of
those times cannot be told to go on behind it, so the read goes on for it, and then waits there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from twisted.internet.defer import Deferred

from kafkacompat.conversion import Unconverted
from kafkacompat.partitions.fetch_sessions import PartitionKey, WantedPartition
from kafkacompat.partitions.fetching import FetchedPartition, FetchLimits, FindPartition, fetch
from kafkacompat.storage.segment.segment_file import FileRegion
from kafkacompat.timers import Clock
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.conversion import Conversions

log = logging.getLogger(__name__)

OURS_TO_REPAIR = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR})

Result = TypeVar("Result")


async def fetch_converted(
    find: FindPartition,
    wanted: Sequence[WantedPartition],
    limits: FetchLimits,
    clock: Clock,
    conversions: Conversions,
    magic: int,
) -> list[FetchedPartition]:
    """Read as `fetch` does, and convert to message format *magic*; fires when there is something to tell or time is up."""
    deadline = clock.seconds() + limits.max_wait_ms / 1000
    behind: dict[PartitionKey, int] = {}
    while True:
        from_there = [replace(each, fetch_offset=behind.get(each.key, each.fetch_offset)) for each in wanted]
        left_ms = max(0, round(1000 * (deadline - clock.seconds())))
        found = await _now(fetch(find, from_there, limits._replace(max_wait_ms=left_ms), clock))
        converted, passed = await _convert(found, conversions, magic)
        if not passed or any(each.size_bytes or each.urgent for each in converted):
            return converted
        behind.update(passed)


async def _now(result: Result | Deferred[Result]) -> Result:
    return await result if isinstance(result, Deferred) else result


async def _convert(
    found: Sequence[FetchedPartition], conversions: Conversions, magic: int
) -> tuple[list[FetchedPartition], dict[PartitionKey, int]]:
    """Convert what was found; returns it with the offset behind what gave nothing, for each partition where that is so."""
    outcomes = await _now(conversions.down(list(_unconverted(found)), magic))
    following = iter(outcomes)
    converted: list[FetchedPartition] = []
    passed: dict[PartitionKey, int] = {}
    for each in found:
        if each.read is None or each.read.region is None:
            converted.append(each)
            continue
        outcome = next(following)
        if isinstance(outcome, KafkaError):
            if outcome.code == ErrorCode.CORRUPT_MESSAGE and each.partition is not None:
                each.partition.examine(each.wanted.fetch_offset)
            if outcome.code in OURS_TO_REPAIR:
                log.error("%s-%d cannot be converted: %s", *each.wanted.key, outcome.detail)
            converted.append(FetchedPartition(each.wanted, each.partition, outcome.code, None))
            continue
        converted.append(each._replace(read=each.read._replace(region=outcome.records)))
        if outcome.records is None and outcome.next_offset > each.wanted.fetch_offset:
            passed[each.wanted.key] = outcome.next_offset
    return converted, passed


def _unconverted(found: Sequence[FetchedPartition]) -> Iterator[Unconverted]:
    for each in found:
        read, partition, wanted = each.read, each.partition, each.wanted
        if read is not None and partition is not None and isinstance(read.region, FileRegion):
            # Messages take more room than the records they are made of.
            max_bytes = max(read.size_bytes, wanted.max_bytes)
            yield Unconverted(partition.log, read.region, wanted.fetch_offset, max_bytes)
