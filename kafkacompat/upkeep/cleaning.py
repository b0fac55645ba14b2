"""Compaction by the clock: which log next, and each one's way through a worker process and back into its place.

A worker process reads and writes; the directory's disk thread renames what was written, and the reactor thread swaps it in.
While a log is compacted nothing else takes segments out of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from twisted.internet.defer import Deferred, DeferredList, succeed
from twisted.python.failure import Failure

from kafkacompat.storage.compaction import (
    Cleanable,
    CleanedSegment,
    CleaningResult,
    CorruptBatchError,
    Progress,
)
from kafkacompat.storage.log.state import is_transient
from kafkacompat.storage.segment.indexes import CorruptIndexError
from kafkacompat.timers import now_ms, unhurried
from kafkacompat.upkeep.cleaning_run import CleaningRun, tell
from kafkacompat.upkeep.pacing import Rest, Throttle
from kafkacompat.wire.errors import KafkaError
from kafkacompat.workers.processes import ReplacedError

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.partitions.directories import Directory
    from kafkacompat.partitions.partition import Partition
    from kafkacompat.storage.compaction import Step
    from kafkacompat.storage.files.filesystem import Files
    from kafkacompat.storage.segment.segment import Segment
    from kafkacompat.upkeep.housekeeping import Housekeeping
    from kafkacompat.upkeep.moving import Moves
    from kafkacompat.workers.processes import Workers

log = logging.getLogger(__name__)

MOST_CLEANERS = 16
"""So many logs at most are compacted at a time, whatever log.cleaner.threads says."""

LEAST_BACKOFF_S = 0.1
MOST_MAP_BYTES = 2**31 - 1


class LogCleaner:
    """Compacts the dirtiest log that is due, and then the next, up to log.cleaner.threads at a time.

    ``workers`` does the work, over ``files``; ``config`` gives the properties as they are now. Retention leaves a log alone until
    it is compacted, a move waits until its compaction is given up.
    """

    def __init__(
        self,
        housekeeping: Housekeeping,
        moves: Moves,
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
        self._rest = Rest(clock)
        self._ended: Deferred[None] | None = None
        self._stopping = False
        housekeeping.is_cleaning = self.is_cleaning
        moves.quiet = self.give_up

    def start(self) -> None:
        """Begin, unless log.cleaner.enable is false; the first look comes after log.cleaner.backoff.ms."""
        if self._config().bool("log.cleaner.enable"):
            self._ended = Deferred.fromCoroutine(self._run())

    async def stop(self) -> None:
        """Give up what is under way; done when nothing of it is, and no process left."""
        self._stopping = True
        self._rest.end()
        given_up = [self.give_up(partition) for partition in list(self._cleanings)]
        # A step takes as long as what clients packed into a batch, and what comes of it is not wanted any more.
        self._workers.close()
        await DeferredList(given_up)
        if self._ended is not None:
            await self._ended

    def is_cleaning(self, partition: Partition) -> bool:
        """Whether its segments are being replaced."""
        return partition in self._cleanings

    def give_up(self, partition: Partition) -> Deferred[None]:
        """Fires when nothing of a partition's compaction is under way."""
        cleaning = self._cleanings.get(partition)
        return succeed(None) if cleaning is None else cleaning.give_up()

    # What next

    async def _run(self) -> None:
        await self._rest.begin(self._backoff_s())
        while not self._stopping:
            try:
                chosen = await self._choose() if len(self._cleanings) < self._threads() else None
            except Exception:
                log.exception("looking for logs to compact failed")
                chosen = None
            if chosen is None:
                await self._rest.begin(self._backoff_s())
            elif not self._stopping:
                self._start_cleaning(*chosen)

    def _threads(self) -> int:
        return min(self._config().int("log.cleaner.threads"), MOST_CLEANERS)

    def _backoff_s(self) -> float:
        return max(self._config().int("log.cleaner.backoff.ms") / 1000, LEAST_BACKOFF_S)

    async def _choose(self) -> tuple[Partition, Cleanable] | None:
        """The partition with the largest share of what was never compacted, among those that are due."""
        best: tuple[float, Partition] | None = None
        async for partition in unhurried(self._clock, list(self._replicas)):
            if not self._may_be_cleaned(partition):
                continue
            if unknown := partition.log.compaction.unknown_first_timestamps():
                await partition.disk.run(partition.log.compaction.learn_first_timestamps, unknown)
            found = self._due(partition)
            if found is not None and (best is None or found.ratio > best[0]):
                best = found.ratio, partition
        if best is None or not self._may_be_cleaned(best[1]) or (found := self._due(best[1])) is None:
            return None
        return best[1], found

    def _may_be_cleaned(self, partition: Partition) -> bool:
        return (
            partition.log.config.compacted
            and not partition.closed
            and partition not in self._uncleanable
            and partition not in self._cleanings
            and self._not_before.get(partition, 0) <= self._clock.seconds()
            and all(move.partition is not partition for move in self._moves)
        )

    def _due(self, partition: Partition) -> Cleanable | None:
        found = partition.log.compaction.cleanable(
            stable_offset=partition.last_stable_offset, now_ms=now_ms(self._clock)
        )
        return found if found is not None and found.is_due(partition.log.config) else None

    def _home(self, partition: Partition) -> Directory | None:
        return self._replicas.directories.home((partition.topic, partition.index))

    # One compaction

    def _start_cleaning(self, partition: Partition, what: Cleanable) -> None:
        cleaning = self._cleanings[partition] = CleaningRun(partition, what, self._clock)
        Deferred.fromCoroutine(self._clean(cleaning)).addErrback(
            lambda failure: log.error("compacting %r failed", partition, exc_info=failure.value)
        )

    async def _clean(self, cleaning: CleaningRun) -> None:
        partition = cleaning.partition
        try:
            # A start after a crash would go by files that the compaction of a deleted topic of this name left.
            await self._tidy_up(partition)
            # The workers learn from the files which transactions were aborted.
            await partition.disk.run(partition.log.committed.write_transaction_index)
            result = await self._compact(cleaning)
            if result is not None:
                partition.log.cleaner_offset = result.end_offset
                home = self._home(partition)
                if home is not None and not home.offline:
                    await partition.disk.run(home.storage.save_cleaner_offset, partition.log)
                tell(cleaning, result, self._clock.seconds())
        except Exception as problem:
            self._failed(partition, problem)
        finally:
            await self._tidy_up(partition)
            del self._cleanings[partition]
            cleaning.ended.callback(None)
            self._rest.end()
        if not (partition.closed or self._stopping):
            self._housekeeping.delete_expired(partition)

    async def _compact(self, cleaning: CleaningRun) -> CleaningResult | None:
        """Take it step by step; None when it was given up."""
        partition, result = cleaning.partition, None
        map_bytes = min(self._config().int("log.cleaner.dedupe.buffer.size") // max(self._threads(), 1), MOST_MAP_BYTES)
        load_factor = min(max(_number(self._config(), "log.cleaner.io.buffer.load.factor"), 0.01), 0.99)
        now = now_ms(self._clock)

        def begin(call: Callable[..., Any]) -> Any:
            """In a worker's thread."""
            job = partition.log.compaction.cleaning_job(
                cleaning.what, now_ms=now, map_bytes=map_bytes, load_factor=load_factor
            )
            return None if job is None else call("compact", self._files, job)

        steps = await self._workers.run(begin)
        if steps is None:
            self._put_off(partition)
            return None
        try:
            while not cleaning.is_over:
                step = await self._workers.run(lambda _: self._step(steps, partition))
                if step is None:
                    return result
                if isinstance(step, Progress):
                    rate = _number(self._config(), "log.cleaner.io.max.bytes.per.second")
                    await cleaning.rest.begin(self._throttle.delay_s(step.io_bytes, rate))
                elif isinstance(step, CleaningResult):
                    result = step
                elif not cleaning.is_over:
                    await self._swap(partition, step)
        finally:
            await self._workers.run(lambda _: steps.close())
        return None

    def _step(self, steps: Iterator[Step], partition: Partition) -> Step | None:
        """In a worker's thread."""
        step = next(steps, None)
        home = self._home(partition)
        if isinstance(step, Progress) and home is not None:
            home.space.check_reserve(home.storage.disk_usage())
        return step

    async def _swap(self, partition: Partition, cleaned: CleanedSegment) -> None:
        compacted = partition.log
        await self._note_first(partition)
        segment = await partition.disk.run(compacted.compaction.prepare_swap, cleaned)
        replaced = compacted.compaction.swap_segments(cleaned, segment)
        await partition.disk.run(compacted.compaction.complete_swap, segment, replaced)
        # Who reads them at the moment has them open.
        self._clock.callLater(compacted.config.file_delete_delay_ms / 1000, self._remove, partition, replaced)

    async def _note_first(self, partition: Partition) -> None:
        """Say that a log is compacted before it has its first gaps: a crash may come before the checkpoint."""
        home = self._home(partition)
        if partition.log.cleaner_offset is None and home is not None and not home.offline:
            partition.log.cleaner_offset = partition.log.log_start_offset
            await partition.disk.run(home.storage.save_cleaner_offset, partition.log)

    def _remove(self, partition: Partition, replaced: list[Segment]) -> None:
        # The next start removes what is left.
        if not (partition.closed or self._stopping):
            partition.disk.run(partition.log.compaction.remove_replaced, replaced).addErrback(partition.disk_failed)

    async def _tidy_up(self, partition: Partition) -> None:
        if not (partition.closed or partition.log.offline):
            try:
                await partition.disk.run(partition.log.compaction.remove_cleaned)
            except Exception as problem:
                self._failed(partition, problem)

    def _put_off(self, partition: Partition) -> None:
        self._not_before[partition] = self._clock.seconds() + self._backoff_s()

    def _failed(self, partition: Partition, problem: Exception) -> None:
        if partition.closed or self._stopping:
            return
        self._put_off(partition)
        if isinstance(problem, ReplacedError):
            self._uncleanable.add(partition)  # which was told
        elif isinstance(problem, OSError) and not is_transient(problem):
            home = self._home(partition)
            assert home is not None
            home.failed(problem)
        elif partition.log.offline:
            partition.disk_failed(Failure(problem))
        elif isinstance(problem, KafkaError | OSError | MemoryError | CorruptIndexError):
            log.error("%r cannot be compacted now: %s", partition, problem)
        else:
            self._uncleanable.add(partition)
            defect = None if isinstance(problem, CorruptBatchError) else problem
            if isinstance(problem, CorruptBatchError):
                partition.examine(problem.base_offset)
            log.error("%r is not compacted until the next start: %s", partition, problem, exc_info=defect)


def _number(config: BrokerConfig, name: str) -> float:
    value = config.value(name)
    assert isinstance(value, float)
    return value
