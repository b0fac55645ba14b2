"""Reading many partitions for one Fetch request within its limits, now or when there is enough.

The rules (KIP-74): partitions are read in the order asked; together they fill at most
``max_bytes``; only the first batch of the first partition that has any is sent whole however large
it is, so that a consumer always gets on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from kafkacompat.partitions.delayed_fetch import DelayedFetch
from kafkacompat.partitions.fetch_sessions import PartitionKey, WantedPartition
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.partition_reader import PartitionRead
from kafkacompat.storage.segment.lookup import ColdDataError
from kafkacompat.storage.segment.segment_file import FileRegion
from kafkacompat.timers import Clock, go_through
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

# Indexes and files of so many partitions are opened for one fetch; far fewer than are kept open at once.
MAX_WARMED = 32


class FetchLimits(NamedTuple):
    """How much a fetch wants and how long it waits for it.

    With ``one_batch_each`` every partition gives a whole batch however large, not only the first that has any; with
    ``committed`` only what is decided is read.
    """

    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    one_batch_each: bool = False
    committed: bool = False


class FetchedPartition(NamedTuple):
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
    one = _Fetch(find, wanted, limits, clock)
    reading = one.read()
    return one.answer() if reading is None and not one.is_cold else Deferred.fromCoroutine(one.prepare(reading))


class _Fetch:
    """One fetch; ``found`` is what was read last."""

    def __init__(
        self, find: FindPartition, wanted: Sequence[WantedPartition], limits: FetchLimits, clock: Clock
    ) -> None:
        self.found: list[FetchedPartition] = []
        self._find = find
        self._wanted = wanted
        self._limits = limits
        self._clock = clock
        self._took_turns = False

    def read(self) -> Deferred[None] | None:
        """Read every partition once; None where that was done at once."""
        self._release()
        found = self.found
        each = read_partitions(self._find, self._wanted, self._limits)
        reading = go_through(self._clock, map(found.append, each))
        self._took_turns = reading is not None
        return reading

    def _release(self) -> None:
        release_all(self.found)
        self.found = []

    @property
    def is_cold(self) -> bool:
        """Whether the disk has to be asked for some of it."""
        return any(each.cold for each in self.found)

    async def prepare(self, reading: Deferred[None] | None) -> list[FetchedPartition]:
        """Answer when the first reading is done and what is cold was looked up."""
        try:
            if reading is not None:
                await reading
            if self.is_cold:
                failed = await self._warm()
                if self.is_cold:
                    # What the disk thread has not looked up is left to the client's next fetch.
                    return [_with_failure(each, failed) if each.cold else each for each in self.found]
            found = self.answer()
            return await found if isinstance(found, Deferred) else found
        except BaseException:
            self._release()
            raise

    async def _warm(self) -> _Failed:
        cold = [each for each in self.found if each.cold]
        self._release()
        failed = await _warm(cold[:MAX_WARMED], self._limits)
        reading = self.read()
        if reading is not None:
            await reading
        return failed

    def answer(self) -> list[FetchedPartition] | Deferred[list[FetchedPartition]]:
        """What was found if that is enough, else what there is once more has arrived or time is up."""
        if self._has_enough():
            return self.found
        later: Deferred[Any] = self._arrival().addCallback(self._read_again)
        return later.addErrback(self._give_up)

    def _has_enough(self) -> bool:
        enough = self._size_bytes() >= self._limits.min_bytes or any(each.urgent for each in self.found)
        return enough or not self.found or self._limits.max_wait_ms <= 0

    def _size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.found)

    def _read_again(self, _: None) -> list[FetchedPartition] | Deferred[list[FetchedPartition]]:
        reading = self.read()
        return self.found if reading is None else reading.addCallback(lambda _: self.found)

    def _give_up(self, failure: Failure) -> Failure:
        self._release()
        return failure

    def _arrival(self) -> Deferred[None]:
        watched = [each.partition for each in self.found if each.partition is not None]
        missing_bytes = self._limits.min_bytes - self._size_bytes()
        limits = self._limits
        waiting = DelayedFetch(
            self._clock,
            watched,
            missing_bytes=missing_bytes,
            max_wait_ms=limits.max_wait_ms,
            committed=limits.committed,
        )
        if self._took_turns and any(_has_moved(each, limits.committed) for each in self.found):
            waiting.wake()
        self._release()
        return waiting.result


def _has_moved(each: FetchedPartition, committed: bool) -> bool:
    """Whether something arrived since it was read, which may be some turns ago."""
    if each.partition is None or each.read is None:
        return False
    end_offset = each.read.last_stable_offset if committed else each.read.high_watermark
    return end_offset != each.partition.end_offset(committed=committed)


def release_all(found: Sequence[FetchedPartition]) -> None:
    """Let go of the files of outcomes that are not sent."""
    for each in found:
        each.release()


def _warm(cold: Sequence[FetchedPartition], limits: FetchLimits) -> Deferred[_Failed]:
    """Bring the places of cold partitions into memory; fires with the codes of those that cannot be read."""
    failed: _Failed = {}

    def note(failure: Failure, key: PartitionKey) -> None:
        log.error("%s-%d cannot be read: %s", *key, failure.getErrorMessage())
        problem = failure.value
        failed[key] = problem.code if isinstance(problem, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR

    warming = [
        each.partition.warm(
            each.wanted.fetch_offset, min(each.wanted.max_bytes, limits.max_bytes), committed=limits.committed
        ).addErrback(note, each.wanted.key)
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
) -> Iterator[FetchedPartition]:
    """Read each partition once, as far as the limit goes."""
    left_bytes = limits.max_bytes
    nothing_yet = True
    for each in wanted:
        whole = nothing_yet or (limits.one_batch_each and left_bytes > 0)
        outcome = _read(find, each, left_bytes, whole, limits.committed)
        size_bytes = outcome.size_bytes
        if size_bytes:
            left_bytes, nothing_yet = max(0, left_bytes - size_bytes), False
        yield outcome


def _read(
    find: FindPartition, wanted: WantedPartition, left_bytes: int, at_least_one_batch: bool, committed: bool
) -> FetchedPartition:
    partition = None
    try:
        partition = find(wanted)
        read = partition.read(
            wanted.fetch_offset,
            min(wanted.max_bytes, left_bytes),
            at_least_one_batch=at_least_one_batch,
            current_leader_epoch=wanted.current_leader_epoch,
            last_fetched_epoch=wanted.last_fetched_epoch,
            committed=committed,
        )
    except KafkaError as problem:
        return FetchedPartition(wanted, partition, problem.code, None)
    except ColdDataError:
        assert partition is not None
        return FetchedPartition(wanted, partition, ErrorCode.NONE, partition.read_nothing(), cold=True)
    return FetchedPartition(wanted, partition, ErrorCode.NONE, read)
