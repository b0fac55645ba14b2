"""Compaction by the clock: choosing the next log, compacting it in a worker process, and swapping in the new segments.

A worker process reads the log and writes new segments. The directory's disk thread renames them, and the reactor thread
swaps them in. While a log is compacted nothing else removes segments from it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from twisted.internet.defer import Deferred, DeferredList, succeed
from twisted.python.failure import Failure

from kafkacompat.storage.compaction import (
    CleanableRange,
    CleanedSegment,
    CleaningProgress,
    CleaningResult,
    CorruptBatchError,
)
from kafkacompat.storage.log.state import is_transient
from kafkacompat.storage.segment.indexes import CorruptIndexError
from kafkacompat.timers import now_ms, yield_unhurried
from kafkacompat.upkeep.cleaning_run import CleaningCounts, CleaningRun, log_result
from kafkacompat.upkeep.pacing import InterruptibleWait, Throttle
from kafkacompat.wire.errors import KafkaError
from kafkacompat.workers.processes import CodeReplacedError

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.partitions.directories import Directory
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.storage.compaction import CleaningStep
    from kafkacompat.storage.files.filesystem import Files
    from kafkacompat.storage.segment.segment import Segment
    from kafkacompat.upkeep.housekeeping import Housekeeping
    from kafkacompat.upkeep.moving import PartitionMoves
    from kafkacompat.workers.processes import Workers

log = logging.getLogger(__name__)

MOST_CLEANERS = 16
"""Logs that are compacted at a time, at most, whatever log.cleaner.threads says."""

LEAST_BACKOFF_S = 0.1
MOST_MAP_BYTES = 2**31 - 1


class LogCleaner:
    """Compacts the dirtiest log that is due, and then the next, up to log.cleaner.threads at a time.

    ``workers`` run the compaction over ``files``; ``config`` returns the current properties. Retention leaves a log
    alone while it is compacted; a move waits until the compaction is cancelled.
    """

    def __init__(
        self,
        housekeeping: Housekeeping,
        moves: PartitionMoves,
        workers: Workers,
        files: Files,
        config: Callable[[], BrokerConfig],
    ) -> None:
        self._replicas = housekeeping.replicas
        self._moves = moves
        self._workers = workers
        self._files = files
        self._clock = clock = housekeeping.clock
        self._config = config
        self._housekeeping = housekeeping
        self._cleanings: dict[Partition, CleaningRun] = {}
        self._uncleanable: WeakSet[Partition] = WeakSet()
        self._not_before: WeakKeyDictionary[Partition, float] = WeakKeyDictionary()
        self._throttle = Throttle(clock)
        self._rest = InterruptibleWait(clock)
        self._ended: Deferred[None] | None = None
        self._stopping = False
        self.counts = CleaningCounts()
        housekeeping.is_cleaning = self.is_cleaning
        moves.quiet = self.give_up

    def start(self) -> None:
        """Begin, unless log.cleaner.enable is false; the first log is chosen after log.cleaner.backoff.ms."""
        if self._config().bool("log.cleaner.enable"):
            self._ended = Deferred.fromCoroutine(self._run())

    async def stop(self) -> None:
        """Cancel all compactions; return when none is under way and no process is left."""
        self._stopping = True
        self._rest.end()
        given_up = [self.give_up(partition) for partition in list(self._cleanings)]
        # A step lasts as long as unpacking a client's batch takes, and its result is no longer needed.
        self._workers.close()
        await DeferredList(given_up)
        if self._ended is not None:
            await self._ended

    def is_cleaning(self, partition: Partition) -> bool:
        """Return whether compaction is replacing a partition's segments."""
        return partition in self._cleanings

    @property
    def under_way(self) -> int:
        """How many logs are being compacted."""
        return len(self._cleanings)

    @property
    def uncleanable(self) -> Collection[Partition]:
        """The partitions whose logs cannot be compacted."""
        return self._uncleanable

    def give_up(self, partition: Partition) -> Deferred[None]:
        """Cancel a partition's compaction; fires when no step of it is under way."""
        cleaning = self._cleanings.get(partition)
        return succeed(None) if cleaning is None else cleaning.give_up()

    def compact_now(self, partition: Partition) -> Deferred[None]:
        """Compact the sealed part of a partition's log that is not compacted yet, due or not; fires at the end.

        Failures are logged, as those of the compactions that the clock starts.
        """
        return Deferred.fromCoroutine(self._compact_now(partition))

    async def _compact_now(self, partition: Partition) -> None:
        if (under_way := self._cleanings.get(partition)) is not None:
            await under_way.wait_for_end()
        if self._may_be_cleaned(partition) and (cleanable := self._find_cleanable(partition)) is not None:
            await self._start_cleaning(partition, cleanable).wait_for_end()

    # Choosing the next log

    async def _run(self) -> None:
        await self._rest.begin(self._backoff_s())
        while not self._stopping:
            try:
                chosen = await self._choose() if len(self._cleanings) < self._count_threads() else None
            except Exception:
                log.exception("looking for logs to compact failed")
                chosen = None
            if chosen is None:
                await self._rest.begin(self._backoff_s())
            elif not self._stopping:
                self._start_cleaning(*chosen)

    def _count_threads(self) -> int:
        return min(self._config().int("log.cleaner.threads"), MOST_CLEANERS)

    def _backoff_s(self) -> float:
        return max(self._config().int("log.cleaner.backoff.ms") / 1000, LEAST_BACKOFF_S)

    async def _choose(self) -> tuple[Partition, CleanableRange] | None:
        """Return the partition with the largest share of bytes never compacted, among those that are due."""
        best: tuple[float, Partition] | None = None
        async for partition in yield_unhurried(self._clock, list(self._replicas)):
            if not self._may_be_cleaned(partition):
                continue
            if unknown := partition.log.compaction.find_unknown_first_timestamps():
                await partition.disk.run(partition.log.compaction.learn_first_timestamps, unknown)
            cleanable = self._find_due(partition)
            if cleanable is not None and (best is None or cleanable.ratio > best[0]):
                best = cleanable.ratio, partition
        if best is None or not self._may_be_cleaned(best[1]) or (cleanable := self._find_due(best[1])) is None:
            return None
        return best[1], cleanable

    def _may_be_cleaned(self, partition: Partition) -> bool:
        return (
            partition.log.config.compacted
            and not (partition.closed or partition.is_truncating)
            and partition not in self._uncleanable
            and partition not in self._cleanings
            and self._not_before.get(partition, 0) <= self._clock.seconds()
            and all(move.partition is not partition for move in self._moves)
        )

    def _find_cleanable(self, partition: Partition) -> CleanableRange | None:
        return partition.log.compaction.find_cleanable(
            stable_offset=partition.last_stable_offset, now_ms=now_ms(self._clock)
        )

    def _find_due(self, partition: Partition) -> CleanableRange | None:
        cleanable = self._find_cleanable(partition)
        return cleanable if cleanable is not None and cleanable.is_due(partition.log.config) else None

    def _find_home(self, partition: Partition) -> Directory | None:
        return self._replicas.directories.find_home((partition.topic, partition.index))

    # One compaction

    def _start_cleaning(self, partition: Partition, cleanable: CleanableRange) -> CleaningRun:
        cleaning = self._cleanings[partition] = CleaningRun(partition, cleanable, self._clock)
        Deferred.fromCoroutine(self._clean(cleaning)).addErrback(
            lambda failure: log.error("compacting %r failed", partition, exc_info=failure.value)
        )
        return cleaning

    async def _clean(self, cleaning: CleaningRun) -> None:
        partition = cleaning.partition
        try:
            # After a crash the next start would use files that the compaction of a deleted topic of this name left.
            await self._remove_leftovers(partition)
            # The workers read from the index files which transactions were aborted.
            await partition.disk.run(partition.log.committed.write_transaction_index)
            result = await self._compact(cleaning)
            if result is not None:
                partition.log.cleaner_offset = result.end_offset
                home = self._find_home(partition)
                if home is not None and not home.offline:
                    await partition.disk.run(home.storage.save_cleaner_offset, partition.log)
                log_result(cleaning, result, self._clock.seconds())
                self.counts.note_result(result)
        except Exception as problem:
            self._on_failure(partition, problem)
        finally:
            await self._remove_leftovers(partition)
            del self._cleanings[partition]
            cleaning.ended.callback(None)
            self._rest.end()
        if not (partition.closed or self._stopping):
            self._housekeeping.delete_expired(partition)

    async def _compact(self, cleaning: CleaningRun) -> CleaningResult | None:
        """Compact step by step; return None when the compaction was cancelled."""
        partition, result = cleaning.partition, None
        map_bytes = min(
            self._config().int("log.cleaner.dedupe.buffer.size") // max(self._count_threads(), 1), MOST_MAP_BYTES
        )
        load_factor = min(max(_read_number(self._config(), "log.cleaner.io.buffer.load.factor"), 0.01), 0.99)
        now = now_ms(self._clock)

        def begin(call: Callable[..., Any]) -> Any:
            """Run in a worker's thread."""
            job = partition.log.compaction.make_cleaning_job(
                cleaning.cleanable, now_ms=now, map_bytes=map_bytes, load_factor=load_factor
            )
            return None if job is None else call("compact", self._files, job)

        steps = await self._workers.run(begin)
        if steps is None:
            self._postpone(partition)
            return None
        try:
            while not cleaning.is_over:
                step = await self._workers.run(lambda _: self._run_step(steps, partition))
                if step is None:
                    return result
                if isinstance(step, CleaningProgress):
                    rate = _read_number(self._config(), "log.cleaner.io.max.bytes.per.second")
                    await cleaning.rest.begin(self._throttle.delay_s(step.io_bytes, rate))
                elif isinstance(step, CleaningResult):
                    result = step
                elif not cleaning.is_over:
                    await self._swap(partition, step)
        finally:
            await self._workers.run(lambda _: steps.close())
        return None

    def _run_step(self, steps: Iterator[CleaningStep], partition: Partition) -> CleaningStep | None:
        """Run in a worker's thread."""
        step = next(steps, None)
        home = self._find_home(partition)
        if isinstance(step, CleaningProgress) and home is not None:
            home.space.check_reserve(home.storage.disk_usage())
        return step

    async def _swap(self, partition: Partition, cleaned: CleanedSegment) -> None:
        compacted = partition.log
        await self._save_first_cleaning(partition)
        segment = await partition.disk.run(compacted.compaction.prepare_swap, cleaned)
        replaced = compacted.compaction.swap_segments(cleaned, segment)
        partition.state.count_bytes()
        await partition.disk.run(compacted.compaction.complete_swap, segment, replaced)
        # Readers may still have the replaced files open.
        self._clock.callLater(compacted.config.file_delete_delay_ms / 1000, self._remove, partition, replaced)

    async def _save_first_cleaning(self, partition: Partition) -> None:
        """Save that a log is compacted before it has its first gaps: a crash may come before the checkpoint."""
        home = self._find_home(partition)
        if partition.log.cleaner_offset is None and home is not None and not home.offline:
            partition.log.cleaner_offset = partition.log.log_start_offset
            await partition.disk.run(home.storage.save_cleaner_offset, partition.log)

    def _remove(self, partition: Partition, replaced: list[Segment]) -> None:
        # The next start removes the files otherwise.
        if not (partition.closed or self._stopping):
            partition.disk.run(partition.log.compaction.remove_replaced, replaced).addErrback(
                partition.report_disk_failure
            )

    async def _remove_leftovers(self, partition: Partition) -> None:
        if not (partition.closed or partition.log.offline):
            try:
                await partition.disk.run(partition.log.compaction.remove_cleaned)
            except Exception as problem:
                self._on_failure(partition, problem)

    def _postpone(self, partition: Partition) -> None:
        self._not_before[partition] = self._clock.seconds() + self._backoff_s()

    def _on_failure(self, partition: Partition, problem: Exception) -> None:
        if partition.closed or self._stopping:
            return
        self.counts.failures += 1
        self._postpone(partition)
        if isinstance(problem, CodeReplacedError):
            self._uncleanable.add(partition)  # the workers have logged why
        elif isinstance(problem, OSError) and not is_transient(problem):
            home = self._find_home(partition)
            assert home is not None
            home.report_failure(problem)
        elif partition.log.offline:
            partition.report_disk_failure(Failure(problem))
        elif isinstance(problem, KafkaError | OSError | MemoryError | CorruptIndexError):
            log.error("%r cannot be compacted now: %s", partition, problem)
        else:
            self._uncleanable.add(partition)
            defect = None if isinstance(problem, CorruptBatchError) else problem
            if isinstance(problem, CorruptBatchError):
                partition.examine(problem.base_offset)
            log.error("%r is not compacted until the next start: %s", partition, problem, exc_info=defect)


def _read_number(config: BrokerConfig, name: str) -> float:
    value = config.value(name)
    assert isinstance(value, float)
    return value
