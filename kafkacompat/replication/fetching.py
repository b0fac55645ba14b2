"""Reading many partitions for one Fetch request within its limits, now or when there is enough.

The rules (KIP-74): partitions are read in the order asked; together they fill at most
``max_bytes``; only the first batch of the first partition that has any is sent whole however large
it is, so that a consumer always gets on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from kafkacompat.replication.delayed import DelayedFetch
from kafkacompat.replication.fetch_sessions import PartitionKey, WantedPartition
from kafkacompat.replication.partition import Partition
from kafkacompat.replication.partition_read import PartitionRead
from kafkacompat.storage.lookup import ColdDataError
from kafkacompat.storage.segment_file import FileRegion
from kafkacompat.timers import Clock
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

# Indexes and files of so many partitions are opened for one fetch; far fewer than are kept open at once.
MAX_WARMED = 32


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How much a fetch wants and how long it waits for it.

    With ``one_batch_each`` every partition gives a whole batch however large, not only the first that has any.
    """

    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    one_batch_each: bool = False


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """The outcome for one partition: what was read, or the error.

    ``partition`` is None for an unknown one; ``cold`` says that the disk has to be asked where the data is.
    """

    wanted: WantedPartition
    partition: Partition | None
    error_code: ErrorCode
    read: PartitionRead | None
    cold: bool = False

    @property
    def urgent(self) -> bool:
        """Whether the client has to know at once."""
        return self.error_code != ErrorCode.NONE or (self.read is not None and self.read.diverging_epoch is not None)

    @property
    def size_bytes(self) -> int:
        """Bytes of record batches found."""
        return self.read.size_bytes if self.read is not None else 0

    def release(self) -> None:
        """Let go of the file of an outcome that is not sent."""
        if self.read is not None and isinstance(self.read.region, FileRegion):
            self.read.region.release()


FindPartition = Callable[[WantedPartition], Partition]
_Failed: TypeAlias = "dict[PartitionKey, ErrorCode]"


def fetch(
    find: FindPartition, wanted: Sequence[WantedPartition], limits: FetchLimits, clock: Clock
) -> list[FetchedPartition] | Deferred[list[FetchedPartition]]:
    """Read what is there; if that is too little, wait for more.

    ``find`` raises KafkaError for a partition that cannot be read here.
    """
    found = read_partitions(find, wanted, limits)
    cold = [each for each in found if each.cold]
    if cold:
        release_all(found)
        return _warm(cold[:MAX_WARMED]).addCallback(lambda failed: _fetch_warm(find, wanted, limits, clock, failed))
    return _answer_or_wait(find, wanted, limits, clock, found)


def _fetch_warm(
    find: FindPartition, wanted: Sequence[WantedPartition], limits: FetchLimits, clock: Clock, failed: _Failed
) -> list[FetchedPartition] | Deferred[list[FetchedPartition]]:
    """Read again what the disk thread has looked up; what is still cold is left to the client's next fetch."""
    found = read_partitions(find, wanted, limits)
    if any(each.cold for each in found):
        return [_with_failure(each, failed) if each.cold else each for each in found]
    return _answer_or_wait(find, wanted, limits, clock, found)


def _answer_or_wait(
    find: FindPartition,
    wanted: Sequence[WantedPartition],
    limits: FetchLimits,
    clock: Clock,
    found: list[FetchedPartition],
) -> list[FetchedPartition] | Deferred[list[FetchedPartition]]:
    size_bytes = sum(each.size_bytes for each in found)
    enough = size_bytes >= limits.min_bytes or any(each.urgent for each in found)
    if enough or not found or limits.max_wait_ms <= 0:
        return found
    release_all(found)
    watched = [each.partition for each in found if each.partition is not None]
    return DelayedFetch(
        clock,
        watched,
        missing_bytes=limits.min_bytes - size_bytes,
        max_wait_ms=limits.max_wait_ms,
        complete=lambda: read_partitions(find, wanted, limits),
    ).result


def release_all(found: Sequence[FetchedPartition]) -> None:
    """Let go of the files of outcomes that are not sent."""
    for each in found:
        each.release()


def _warm(cold: Sequence[FetchedPartition]) -> Deferred[_Failed]:
    """Bring the places of cold partitions into memory; fires with the codes of those that cannot be read."""
    failed: _Failed = {}

    def note(failure: Failure, key: PartitionKey) -> None:
        log.error("%s-%d cannot be read: %s", *key, failure.getErrorMessage())
        problem = failure.value
        failed[key] = problem.code if isinstance(problem, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR

    warming = [
        each.partition.warm(each.wanted.fetch_offset).addErrback(note, each.wanted.key)
        for each in cold
        if each.partition is not None
    ]
    done: Deferred[_Failed] = Deferred()
    # When `done` is given up the look-ups go on: there is nothing to take back, and nobody to tell.
    DeferredList(warming).addCallback(lambda _: failed).chainDeferred(done)
    return done


def _with_failure(cold: FetchedPartition, failed: _Failed) -> FetchedPartition:
    """What a look-up that failed says of a partition; without it a client would ask again and again."""
    code = failed.get(cold.wanted.key)
    return cold if code is None else FetchedPartition(cold.wanted, cold.partition, code, None)


def read_partitions(
    find: FindPartition, wanted: Sequence[WantedPartition], limits: FetchLimits
) -> list[FetchedPartition]:
    """Read each partition once, as far as the limit goes."""
    found = []
    left_bytes = limits.max_bytes
    nothing_yet = True
    for each in wanted:
        whole = nothing_yet or (limits.one_batch_each and left_bytes > 0)
        outcome = _read(find, each, left_bytes, whole)
        left_bytes = max(0, left_bytes - outcome.size_bytes)
        nothing_yet = nothing_yet and not outcome.size_bytes
        found.append(outcome)
    return found


def _read(find: FindPartition, wanted: WantedPartition, left_bytes: int, at_least_one_batch: bool) -> FetchedPartition:
    partition = None
    try:
        partition = find(wanted)
        read = partition.read(
            wanted.fetch_offset,
            min(wanted.max_bytes, left_bytes),
            at_least_one_batch=at_least_one_batch,
            current_leader_epoch=wanted.current_leader_epoch,
            last_fetched_epoch=wanted.last_fetched_epoch,
        )
    except KafkaError as problem:
        return FetchedPartition(wanted, partition, problem.code, None)
    except ColdDataError:
        assert partition is not None
        return FetchedPartition(wanted, partition, ErrorCode.NONE, partition.nothing(), cold=True)
    return FetchedPartition(wanted, partition, ErrorCode.NONE, read)
