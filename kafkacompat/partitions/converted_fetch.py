"""Fetches of clients that read message sets (Fetch before v4): the log's batches are converted for them.

A batch may leave nothing after conversion: control batches are left out, and so are records before the fetch offset.
The response has no way to make such an old client skip the batch. So the fetch itself reads on after the batch, and
waits there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.conversion import RegionToConvert
from kafkacompat.partitions.fetch_sessions import PartitionKey, WantedPartition
from kafkacompat.partitions.fetching import FetchedPartition, FetchLimits, FindPartition, fetch_partitions
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.timers import Clock
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.conversion import Conversions

log = logging.getLogger(__name__)

LOGGED_ERRORS = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR})
"""Errors that the broker's operator has to repair."""


async def fetch_converted(
    find: FindPartition,
    wanted: Sequence[WantedPartition],
    limits: FetchLimits,
    clock: Clock,
    conversions: Conversions,
    magic: int,
) -> list[FetchedPartition]:
    """Read as `fetch` does, and convert to message format *magic*; return when there is data or the time is up."""
    deadline = clock.seconds() + limits.max_wait_ms / 1000
    next_offsets: dict[PartitionKey, int] = {}
    while True:
        moved_on = [replace(want, fetch_offset=next_offsets.get(want.key, want.fetch_offset)) for want in wanted]
        left_ms = max(0, round(1000 * (deadline - clock.seconds())))
        fetching = fetch_partitions(find, moved_on, limits._replace(max_wait_ms=left_ms), clock)
        fetched = await fetching if isinstance(fetching, Deferred) else fetching
        converted, skipped = await _convert_regions(fetched, conversions, magic)
        if not skipped or any(partition.size_bytes or partition.urgent for partition in converted):
            return converted
        next_offsets.update(skipped)


async def _convert_regions(
    fetched: Sequence[FetchedPartition], conversions: Conversions, magic: int
) -> tuple[list[FetchedPartition], dict[PartitionKey, int]]:
    """Convert the partitions' regions.

    Returns the partitions, and for each whose batches left nothing the offset after these batches.
    """
    converting = conversions.down_convert(list(_list_unconverted(fetched)), magic)
    outcomes = iter(await converting if isinstance(converting, Deferred) else converting)
    converted: list[FetchedPartition] = []
    skipped: dict[PartitionKey, int] = {}
    for partition in fetched:
        if partition.read is None or partition.read.region is None:
            converted.append(partition)
            continue
        outcome = next(outcomes)
        if isinstance(outcome, KafkaError):
            converted.append(_with_error(partition, outcome))
            continue
        converted.append(partition._replace(read=partition.read._replace(region=outcome.records)))
        if outcome.records is None and outcome.next_offset > partition.wanted.fetch_offset:
            skipped[partition.wanted.key] = outcome.next_offset
    return converted, skipped


def _with_error(fetched: FetchedPartition, problem: KafkaError) -> FetchedPartition:
    """Return the partition with the error of its conversion; damage is examined and logged."""
    if problem.code == ErrorCode.CORRUPT_MESSAGE and fetched.partition is not None:
        fetched.partition.examine(fetched.wanted.fetch_offset)
    if problem.code in LOGGED_ERRORS:
        log.error("%s-%d cannot be converted: %s", *fetched.wanted.key, problem.detail)
    return FetchedPartition(fetched.wanted, fetched.partition, problem.code, None)


def _list_unconverted(fetched: Sequence[FetchedPartition]) -> Iterator[RegionToConvert]:
    for outcome in fetched:
        read, partition, wanted = outcome.read, outcome.partition, outcome.wanted
        if read is not None and partition is not None and isinstance(read.region, FileRegion):
            # Messages are larger than the records they are made of.
            max_bytes = max(read.size_bytes, wanted.max_bytes)
            yield RegionToConvert(partition.log, read.region, wanted.fetch_offset, max_bytes)
