"""Reading the partitions of one Fetch request within its limits, now or when enough has arrived.

The rules (KIP-74): partitions are read in the order of the request, and together they fill at most ``max_bytes``. Only
the first batch of the first partition that has data is sent whole however large it is, so that a consumer always makes
progress.
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
from kafkacompat.partitions.replica_progress import FetchingReplica
from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.timers import Clock, make_steps, now_ms
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

MAX_WARMED = 32
"""Partitions whose indexes and files are opened for one fetch; far fewer than the broker keeps open."""


class FetchLimits(NamedTuple):
    """How much a fetch wants, and how long it waits for that.

    With ``one_batch_each`` every partition returns a whole batch however large, not only the first that has data. With
    ``committed`` the fetch reads up to the last stable offset.
    """

    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    one_batch_each: bool = False
    committed: bool = False


class FetchReader(NamedTuple):
    """The client or the broker that fetches.

    ``replica`` is a follower, which reads up to the log's end. A consumer has none; with ``reads_followers`` it accepts
    data from brokers that follow, and ``find_nearest`` returns the replica that it should read an offset from, -1 for
    the leader (KIP-392).
    """

    replica: FetchingReplica | None = None
    reads_followers: bool = False
    find_nearest: Callable[[Partition, int], int] | None = None


OLD_CONSUMER = FetchReader()
"""A consumer that reads from leaders only."""


class FetchedPartition(NamedTuple):
    """What was read from one partition, or the error.

    ``partition`` is None where there is no such partition. ``cold`` says that finding the data has to wait for the
    disk.
    """

    wanted: WantedPartition
    partition: Partition | None
    error_code: ErrorCode
    read: PartitionRead | None
    cold: bool = False

    @property
    def urgent(self) -> bool:
        """Whether the client must learn of the outcome at once: an error, a diverging epoch, or a nearer replica."""
        read = self.read
        return self.error_code != ErrorCode.NONE or (
            read is not None and (read.diverging_epoch is not None or read.preferred_read_replica >= 0)
        )

    @property
    def size_bytes(self) -> int:
        """Bytes of record batches that were read."""
        return self.read.size_bytes if self.read is not None else 0

    def release(self) -> None:
        """Release the file region of an outcome that is not sent."""
        if self.read is not None and isinstance(self.read.region, FileRegion):
            self.read.region.release()


FindPartition = Callable[[WantedPartition], Partition]
_Failed: TypeAlias = "dict[PartitionKey, ErrorCode]"


def fetch_partitions(
    find: FindPartition,
    wanted: Sequence[WantedPartition],
    limits: FetchLimits,
    clock: Clock,
    reader: FetchReader = OLD_CONSUMER,
) -> list[FetchedPartition] | Deferred[list[FetchedPartition]]:
    """Read the partitions; if that is too little, wait for more.

    ``find`` raises KafkaError for a partition that cannot be read here.
    """
    run = _Fetch(find, wanted, limits, clock, reader)
    reading = run.read()
    return run.answer() if reading is None and not run.is_cold else Deferred.fromCoroutine(run.prepare(reading))


class _Fetch:
    """One fetch; ``fetched`` are the outcomes of its last read, in the order of the request.

    A follower's fetch counts when it arrives, not when it has waited for data.
    """

    def __init__(
        self,
        find: FindPartition,
        wanted: Sequence[WantedPartition],
        limits: FetchLimits,
        clock: Clock,
        reader: FetchReader,
    ) -> None:
        self.fetched: list[FetchedPartition] = []
        self._find = find
        self._wanted = wanted
        self._limits = limits
        self._clock = clock
        self._reader = reader
        self._arrived_ms: int | None = now_ms(clock)
        self._took_turns = False

    def read(self) -> Deferred[None] | None:
        """Read every partition once; return None where that is done already, else a Deferred that fires when it is."""
        self._release()
        reading = make_steps(
            self._clock,
            map(
                self.fetched.append,
                read_partitions(self._find, self._wanted, self._limits, self._reader, self._arrived_ms),
            ),
        )
        self._took_turns = reading is not None
        return reading

    def _release(self) -> None:
        release_unsent(self.fetched)
        self.fetched = []

    @property
    def is_cold(self) -> bool:
        """Whether finding the data of a partition has to wait for the disk."""
        return any(partition.cold for partition in self.fetched)

    async def prepare(self, reading: Deferred[None] | None) -> list[FetchedPartition]:
        """Return the answer once the first read is done and cold partitions are warmed and read again."""
        try:
            if reading is not None:
                await reading
            if self.is_cold:
                failed = await self._warm()
                if self.is_cold:
                    # Partitions that are still cold are left to the client's next fetch.
                    return [_with_failure(outcome, failed) if outcome.cold else outcome for outcome in self.fetched]
            answer = self.answer()
            return await answer if isinstance(answer, Deferred) else answer
        except BaseException:
            self._release()
            raise

    async def _warm(self) -> _Failed:
        cold = [partition for partition in self.fetched if partition.cold]
        self._release()
        failed = await _load_cold_data(cold[:MAX_WARMED], self._limits)
        reading = self.read()
        if reading is not None:
            await reading
        return failed

    def answer(self) -> list[FetchedPartition] | Deferred[list[FetchedPartition]]:
        """Return the outcomes if they are enough, else those of a second read once more has arrived or time is up."""
        if self._has_enough():
            return self.fetched
        later: Deferred[Any] = self._arrival().addCallback(self._read_again)
        return later.addErrback(self._give_up)

    def _has_enough(self) -> bool:
        enough = self._size_bytes() >= self._limits.min_bytes or any(outcome.urgent for outcome in self.fetched)
        return enough or not self.fetched or self._limits.max_wait_ms <= 0

    def _size_bytes(self) -> int:
        return sum(outcome.size_bytes for outcome in self.fetched)

    def _read_again(self, _: None) -> list[FetchedPartition] | Deferred[list[FetchedPartition]]:
        self._arrived_ms = None
        reading = self.read()
        return self.fetched if reading is None else reading.addCallback(lambda _: self.fetched)

    def _give_up(self, failure: Failure) -> Failure:
        self._release()
        return failure

    def _arrival(self) -> Deferred[None]:
        watched = [outcome.partition for outcome in self.fetched if outcome.partition is not None]
        missing_bytes = self._limits.min_bytes - self._size_bytes()
        limits = self._limits
        waiting = DelayedFetch(
            self._clock,
            watched,
            missing_bytes=missing_bytes,
            max_wait_ms=limits.max_wait_ms,
            committed=limits.committed,
            to_log_end=self._reader.replica is not None,
        )
        # A replica's fetch shows what it has. Whoever waited for that may have appended more, before this fetch was watching.
        may_have_moved = self._took_turns or self._reader.replica is not None
        if may_have_moved and any(_has_moved(outcome, limits.committed) for outcome in self.fetched):
            waiting.wake()
        self._release()
        return waiting.result


def _has_moved(fetched: FetchedPartition, committed: bool) -> bool:
    """Return whether data arrived after the partition was read."""
    if fetched.partition is None or fetched.read is None:
        return False
    if fetched.read.log_end_offset >= 0:
        return fetched.read.log_end_offset != fetched.partition.log.log_end_offset
    end_offset = fetched.read.last_stable_offset if committed else fetched.read.high_watermark
    return end_offset != fetched.partition.end_offset(committed=committed)


def release_unsent(fetched: Sequence[FetchedPartition]) -> None:
    """Release the file regions of outcomes that are not sent."""
    for partition in fetched:
        partition.release()


def _load_cold_data(cold: Sequence[FetchedPartition], limits: FetchLimits) -> Deferred[_Failed]:
    """Load what reading cold partitions needs; fires with the error codes of those that cannot be read."""
    failed: _Failed = {}

    def note(failure: Failure, key: PartitionKey) -> None:
        log.error("%s-%d cannot be read: %s", *key, failure.value)
        problem = failure.value
        failed[key] = problem.code if isinstance(problem, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR

    warming = [
        outcome.partition.warm(
            outcome.wanted.fetch_offset, min(outcome.wanted.max_bytes, limits.max_bytes), committed=limits.committed
        ).addErrback(note, outcome.wanted.key)
        for outcome in cold
        if outcome.partition is not None
    ]
    done: Deferred[_Failed] = Deferred()
    # When `done` is cancelled the look-ups go on; their results are ignored.
    DeferredList(warming).addCallback(lambda _: failed).chainDeferred(done)
    return done


def _with_failure(cold: FetchedPartition, failed: _Failed) -> FetchedPartition:
    """Return a cold partition with the error of its look-up, if it has one: else the client would try for ever."""
    code = failed.get(cold.wanted.key)
    return cold if code is None else FetchedPartition(cold.wanted, cold.partition, code, None)


def read_partitions(
    find: FindPartition,
    wanted: Sequence[WantedPartition],
    limits: FetchLimits,
    reader: FetchReader = OLD_CONSUMER,
    arrived_ms: int | None = None,
) -> Iterator[FetchedPartition]:
    """Read each partition once, within what the limits leave of ``max_bytes``.

    ``arrived_ms`` is the time of a follower's request; None for a later read of the same request, which does not count.
    """
    left_bytes = limits.max_bytes
    is_empty = True
    for partition in wanted:
        whole = is_empty or (limits.one_batch_each and left_bytes > 0)
        outcome = _read_partition(find, partition, left_bytes, whole, limits.committed, reader, arrived_ms)
        size_bytes = outcome.size_bytes
        if size_bytes:
            left_bytes, is_empty = max(0, left_bytes - size_bytes), False
        yield outcome


def _read_partition(
    find: FindPartition,
    wanted: WantedPartition,
    left_bytes: int,
    at_least_one_batch: bool,
    committed: bool,
    reader: FetchReader,
    arrived_ms: int | None,
) -> FetchedPartition:
    partition = None
    max_bytes = min(wanted.max_bytes, left_bytes)
    try:
        partition = find(wanted)
        if reader.replica is not None:
            read = partition.read_as_replica(
                reader.replica, wanted, max_bytes, at_least_one_batch=at_least_one_batch, fetched_ms=arrived_ms
            )
        elif (
            reader.find_nearest is not None and (nearest := _find_nearest(reader.find_nearest, partition, wanted)) >= 0
        ):
            read = partition.read_nothing()._replace(preferred_read_replica=nearest)
        else:
            read = partition.read(
                wanted.fetch_offset,
                max_bytes,
                at_least_one_batch=at_least_one_batch,
                current_leader_epoch=wanted.current_leader_epoch,
                last_fetched_epoch=wanted.last_fetched_epoch,
                committed=committed,
                from_follower=reader.reads_followers,
            )
    except KafkaError as problem:
        return FetchedPartition(wanted, partition, problem.code, None)
    except ColdDataError:
        assert partition is not None
        return FetchedPartition(wanted, partition, ErrorCode.NONE, partition.read_nothing(), cold=True)
    return FetchedPartition(wanted, partition, ErrorCode.NONE, read)


def _find_nearest(find_nearest: Callable[[Partition, int], int], partition: Partition, wanted: WantedPartition) -> int:
    """Return the replica to read from, -1 for this one. Raises KafkaError for a fenced or unknown leader epoch."""
    if not partition.state.is_replicated:
        return -1
    partition.check_epoch(wanted.current_leader_epoch)
    return find_nearest(partition, wanted.fetch_offset)
