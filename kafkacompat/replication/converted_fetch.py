"""Fetches of clients that read message sets: what the log has is converted, one partition after the other.

A batch may have nothing to convert: control batches are left out, and so are records in front of the fetch offset. A client of
those times cannot be told to go on behind it, so the read goes on for it, and then waits there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from twisted.internet.defer import Deferred

from kafkacompat.replication.fetch_sessions import PartitionKey, WantedPartition
from kafkacompat.replication.fetching import FetchedPartition, FetchLimits, FindPartition, fetch, release_all
from kafkacompat.storage.segment_file import FileRegion
from kafkacompat.timers import Clock
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.conversion import Conversions

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
        found = await _now(fetch(find, from_there, replace(limits, max_wait_ms=left_ms), clock))
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
    converted: list[FetchedPartition] = []
    passed: dict[PartitionKey, int] = {}
    try:
        for each in found:
            outcome, next_offset = await _convert_one(each, conversions, magic)
            converted.append(outcome)
            if not outcome.size_bytes and next_offset > each.wanted.fetch_offset:
                passed[each.wanted.key] = next_offset
    except BaseException:
        release_all(converted)
        release_all(found[len(converted) + 1 :])
        raise
    return converted, passed


async def _convert_one(each: FetchedPartition, conversions: Conversions, magic: int) -> tuple[FetchedPartition, int]:
    read, partition, wanted = each.read, each.partition, each.wanted
    if read is None or partition is None or not isinstance(read.region, FileRegion):
        return each, wanted.fetch_offset
    # Messages take more room than the records they are made of.
    max_bytes = max(read.size_bytes, wanted.max_bytes)
    try:
        result = await _now(conversions.down(partition.log, read.region, magic, wanted.fetch_offset, max_bytes))
    except (KafkaError, OSError) as problem:
        code = problem.code if isinstance(problem, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
        return FetchedPartition(wanted, partition, code, None), wanted.fetch_offset
    return replace(each, read=replace(read, region=result.records)), result.next_offset
